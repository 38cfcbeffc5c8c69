"""The strict, frozen base of every contract model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """A frozen record that refuses unknown keys, coerced types, NaN and infinities."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Contract(Model):
    """A frozen record that is read back from JSON, where tuples are arrays and times are text."""

    model_config = ConfigDict(frozen=True, strict=False, extra="forbid", allow_inf_nan=False)


Amount = Annotated[int, Field(ge=0)]
"""A whole number that is worked out, so that a large one is refused in words and not for its size."""
Bytes = Annotated[int, Field(ge=0, le=10**18)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]
Capacity = Literal["on-demand", "spot", "capacity-block"]
"""How machines are bought; a capacity block is a reservation that is paid in advance."""
USD_MAX = 10**9
Usd = Annotated[float, Field(ge=0, le=USD_MAX)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
RunId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
NodeId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$")]
