"""The numbers of one attention call, checked: shared by rules, decomposition and every kernel."""

from __future__ import annotations

from dataclasses import dataclass

from fuelvk.base.errors import ParameterError, ShapeError, UnsupportedError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.types import Params, Shapes

NAME = "flash_attn"
MAX_HEAD_DIM = 256


@dataclass(frozen=True, slots=True)
class AttnParams:
    """Extents and masks of a call.

    Row i stands at ``i + causal_offset``; None means ``k_lens[b] - Sq`` per batch item. ``k_len`` is the
    number of keys where no k_lens is given. ``softcap`` 0 is off; ``window_left`` and ``window_right`` None
    are off.
    """

    B: int
    Hq: int
    Hkv: int
    Sq: int
    Sk: int
    D: int
    scale: float
    causal: bool
    causal_offset: int | None
    window_left: int | None
    window_right: int | None
    softcap: float
    k_len: int

    @property
    def group(self) -> int:
        """Query heads per kv head; 1 when there are no heads."""
        return self.Hq // self.Hkv if self.Hkv else 1

    @property
    def masked_by_position(self) -> bool:
        """True where rows may see different keys."""
        return self.causal or self.window_left is not None or self.window_right is not None


def resolve(shapes: Shapes, params: Params, has_k_lens: bool, name: str = NAME) -> AttnParams:
    """Returns the checked numbers of a call; ``shapes`` are q, k, v and, where given, slopes and k_lens.

    ``name`` is the op that errors speak of.

    Raises ShapeError, ParameterError, and UnsupportedError for heads wider than 256.
    """
    q, k, v = (rules.given(s) for s in shapes[:3])
    for arg, shape in (("q", q), ("k", k), ("v", v)):
        rules.need_rank(name, arg, shape, 4, 4)
    (batch, hq, sq, d), (_, hkv, sk, _) = q, k
    expected = (batch, hkv, sk, d)
    rules.need_shape(name, "k", k, expected, "q's batch and head width")
    rules.need_shape(name, "v", v, expected, "like k")
    if (hkv == 0 and hq != 0) or (hkv and hq % hkv):
        raise ShapeError(
            f"{name}: query heads are no multiple of kv heads",
            seen=f"Hq={hq}, Hkv={hkv}",
            allowed="Hq % Hkv == 0",
        )
    if d > MAX_HEAD_DIM:
        raise UnsupportedError(
            f"{name}: heads this wide have no implementation", seen=f"D={d}", allowed="D <= 256"
        )
    _need_vector(name, "alibi_slopes", shapes, 3, hq, "one slope per query head")
    _need_vector(name, "k_lens", shapes, 4, batch, "one length per batch item")
    k_len = sk if params.get("k_len") is None else int(params["k_len"])
    if not 0 <= k_len <= sk:
        raise ParameterError(f"{name}: k_len lies outside the keys", asked=k_len, allowed=f"0 to Sk={sk}")
    for param in ("window_left", "window_right", "softcap"):
        value = params.get(param)
        if value is not None and not value >= 0:
            raise ParameterError(
                f"{name}: {param} is negative or NaN", asked=value, allowed="a number >= 0, or None"
            )
    offset = params.get("causal_offset")
    if offset is None and not has_k_lens:
        offset = k_len - sq
    return AttnParams(
        B=batch,
        Hq=hq,
        Hkv=hkv,
        Sq=sq,
        Sk=sk,
        D=d,
        scale=float(params["scale"]),
        causal=bool(params.get("causal", False)),
        causal_offset=offset,
        window_left=params.get("window_left"),
        window_right=params.get("window_right"),
        softcap=float(params.get("softcap") or 0.0),
        k_len=k_len,
    )


def _need_vector(name: str, arg: str, shapes: Shapes, index: int, extent: int, why: str) -> None:
    shape: Shape | None = shapes[index] if index < len(shapes) else None
    rules.need_shape(name, arg, shape, (extent,), why)
