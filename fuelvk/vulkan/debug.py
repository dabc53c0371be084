"""Validation layers: switching them on, collecting their messages, turning them into exceptions."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

from fuelvk.base.errors import UnsupportedError, ValidationError
from fuelvk.vulkan.loader import Api, check

LAYER = "VK_LAYER_KHRONOS_validation"
DEBUG_UTILS = "VK_EXT_debug_utils"
_WARNING, _ERROR = 0x100, 0x1000
_GENERAL, _VALIDATION = 0x1, 0x2
_SYNCHRONIZATION_VALIDATION = 4
_SHOWN = 4
_KEPT = 1000

OBJECT_TYPES = {"buffer": 9, "memory": 8, "module": 15, "pipeline": 19, "command_buffer": 6, "semaphore": 5}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a layer, the loader or a driver."""

    severity: str
    id_name: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.text}"


class Debug:
    """Collects the messages of one instance.

    ``raising`` makes new ones exceptions at the next submit or wait.
    """

    __slots__ = ("_callback", "_messenger", "_pending", "_set_name", "lock", "messages", "raising")

    def __init__(self, raising: bool) -> None:
        self.messages: deque[Message] = deque(maxlen=_KEPT)
        self.raising = raising
        self.lock = threading.Lock()
        self._pending: list[Message] = []
        self._callback: Any = None
        self._messenger: Any = None
        self._set_name: Any = None

    def create_info(self, api: Api) -> Any:
        """Returns the messenger structure, which also belongs into the chain of VkInstanceCreateInfo."""
        ffi = api.ffi

        def report(severity: int, kind: int, data: Any, _user: Any) -> int:
            text = ffi.string(data.pMessage).decode(errors="replace") if data.pMessage else ""
            name = ffi.string(data.pMessageIdName).decode(errors="replace") if data.pMessageIdName else ""
            message = Message("error" if severity & _ERROR else "warning", name, text)
            self.messages.append(message)
            if kind & _VALIDATION:
                self._pending.append(message)
            return 0

        self._callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", report)
        return api.new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=_WARNING | _ERROR,
            messageType=_GENERAL | _VALIDATION,
            pfnUserCallback=self._callback,
        )

    def attach(self, api: Api, instance: Any, info: Any) -> None:
        """Creates the messenger on an instance."""
        create = api.function(instance, "vkCreateDebugUtilsMessengerEXT", "vkGetInstanceProcAddr")
        cell = api.ffi.new("VkDebugUtilsMessengerEXT*")
        check(create(instance, info, api.null, cell), "vkCreateDebugUtilsMessengerEXT")
        self._messenger = cell[0]
        self._set_name = api.function(instance, "vkSetDebugUtilsObjectNameEXT", "vkGetInstanceProcAddr")

    def detach(self, api: Api, instance: Any) -> None:
        """Destroys the messenger."""
        if self._messenger is not None:
            api.function(instance, "vkDestroyDebugUtilsMessengerEXT", "vkGetInstanceProcAddr")(
                instance, self._messenger, api.null
            )
            self._messenger = None

    def raise_pending(self) -> None:
        """Raises ValidationError for the messages that came since the last call, when validation is on."""
        if not self._pending:
            return
        with self.lock:
            pending, self._pending[:] = list(self._pending), []
        if pending and self.raising:
            more = f" (and {len(pending) - _SHOWN} more)" if len(pending) > _SHOWN else ""
            raise ValidationError("validation layer: " + "\n".join(map(str, pending[:_SHOWN])) + more)

    def name(self, api: Api, device: Any, kind: str, handle: Any, name: str) -> None:
        """Names an object for messages and debuggers; nothing without validation."""
        if self._set_name is None or not name:
            return
        cell = api.ffi.new("char[]", name.encode())
        info = api.new(
            "VkDebugUtilsObjectNameInfoEXT",
            objectType=OBJECT_TYPES[kind],
            objectHandle=int(api.ffi.cast("uintptr_t", handle)),
            pObjectName=cell,
        )
        check(self._set_name(device, info), "vkSetDebugUtilsObjectNameEXT")


def validation_chain(api: Api, mode: str, tail: Any) -> tuple[Any, list[Any]]:
    """Returns the head of the instance's chain for a validation mode ("core" or "sync") and what must outlive
    it.
    """
    if mode == "core":
        return tail, []
    enables = api.ffi.new("VkValidationFeatureEnableEXT[]", [_SYNCHRONIZATION_VALIDATION])
    features = api.new(
        "VkValidationFeaturesEXT",
        pNext=tail,
        enabledValidationFeatureCount=1,
        pEnabledValidationFeatures=enables,
    )
    return features, [enables, features]


def require_layer(api: Api) -> None:
    """Raises UnsupportedError when the validation layer is not installed."""
    layers = api.listed("vkEnumerateInstanceLayerProperties", "VkLayerProperties")
    if LAYER not in {api.text(layer.layerName) for layer in layers}:
        raise UnsupportedError(
            "the Vulkan validation layer is not installed",
            asked=LAYER,
            hint="apt install vulkan-validationlayers, or unset FUELVK_VALIDATION",
        )
