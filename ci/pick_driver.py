"""Prints what VK_DRIVER_FILES should be: hardware drivers that offer a device, then the best lavapipe.

    python ci/pick_driver.py FOLDER         FOLDER: what ci/drivers filled

A driver is tried in a process of its own, since a broken one can end it. Says on stderr what it chose.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ICD_FOLDERS = ("/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d")
DEVICE_NODES = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")

PROBE = """
import vulkan as vk
application = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 2, 0))
instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
for device in vk.vkEnumeratePhysicalDevices(instance):
    properties = vk.vkGetPhysicalDeviceProperties(device)
    recent = properties.apiVersion >= vk.VK_MAKE_VERSION(1, 2, 0)
    if recent and properties.deviceType != vk.VK_PHYSICAL_DEVICE_TYPE_CPU:
        print(properties.deviceName)
"""


def installed() -> list[Path]:
    """Returns the ICD files of the system, in name order."""
    return [path for folder in ICD_FOLDERS for path in sorted(Path(folder).glob("*.json"))]


def hardware() -> list[Path]:
    """Returns the ICD files that offer a device which is not a CPU; none are tried without a device node."""
    if not any(Path("/").glob(pattern[1:]) for pattern in DEVICE_NODES):
        return []
    found = []
    for path in installed():
        if not path.name.startswith("lvp_icd"):
            environment = {**os.environ, "VK_DRIVER_FILES": str(path)}
            done = subprocess.run(
                [sys.executable, "-c", PROBE],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            names = done.stdout.split("\n")[:-1] if done.returncode == 0 else []
            if names:
                print(f"hardware: {', '.join(names)} ({path})", file=sys.stderr)
                found.append(path)
    return found


def lavapipes(fetched: Path) -> list[Path]:
    """Returns the lavapipe ICD files, the preferred one first."""
    own = fetched / "lavapipe_icd.json"
    return [
        path for path in (own, *(p for p in installed() if p.name.startswith("lvp_icd"))) if path.is_file()
    ]


def main() -> int:
    chosen = hardware()
    cpu = lavapipes(Path(sys.argv[1]))
    if cpu:
        chosen.append(cpu[0])
    if not chosen:
        print("no Vulkan driver found; the CPU reference will do the work", file=sys.stderr)
    else:
        print(f"VK_DRIVER_FILES: {', '.join(map(str, chosen))}", file=sys.stderr)
    print(os.pathsep.join(map(str, chosen)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
