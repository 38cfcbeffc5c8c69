"""Events that must change nothing: forged, foreign, stale, replayed, changed, oversize, of wrong types, too late."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.domain.events import SOURCE, event_id, signature

Event = dict[str, Any]
BODIES: dict[str, dict[str, Any]] = {
    "Node Ready": {"agent_version": "1", "boot_id": "b"},
    "Node Configured": {"actions": 1, "not_executed": ["x"]},
    "Dataset Progress": {"files": 1, "bytes": 1, "total_files": 1, "total_bytes": 1, "rate_bytes_per_s": 1},
    "Dataset Staged": {"files": 1, "bytes": 1, "digest": "0" * 64},
    "Dataset Failed": {"reason": "forged", "missing": ["a"]},
    "Job Started": {"pid": 1},
    "Job Progress": {"step": 1, "total_steps": 2, "metrics": {"loss": "0.5"}, "message": "forged"},
    "Results Progress": {"files": 1, "bytes": 1},
    "Telemetry Sampled": {"activity": "training", "agent_resident_bytes": 1, "outbox_depth": 0},
    "Job Done": {"manifest": "results/x/manifest.json", "files": 1, "bytes": 1},
    "Job Failed": {"reason": "forged", "exit_code": 1, "signal": None, "log_tail": "", "manifest": None},
    "Node Leaving": {"reason": "forged"},
}
TELEMETRY = ("Telemetry Sampled", "Dataset Progress", "Job Progress", "Results Progress")
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, 1.0, 10**400, "", "1", "true", "x" * 2_000, [], [1], {}, {"a": 1}, "\ud800"),
    *("\0", "../..", "2026-01-01", [[[[[[]]]]]], {"$ne": None}, "' OR 1=1 --"),
)


@dataclass(frozen=True)
class Sender:
    """A node that events may claim to come from, and the key that it signs with."""

    run_id: str
    node_id: str
    attempt: int
    key: bytes


def signed(sender: Sender, detail_type: str, number: int, given: Any = None, /, **changes: Any) -> Event:
    """Return the sender's event of that type and number, with details changed before it is signed."""
    detail: dict[str, Any] = {
        "version": 1,
        "event_id": event_id(sender.run_id, sender.attempt, sender.node_id, number, detail_type),
        "run_id": sender.run_id,
        "attempt": sender.attempt,
        "node_id": sender.node_id,
        "sequence": number,
        "sent_at": "2026-01-01T00:03:00.000Z",
        "body": copy.deepcopy(BODIES[detail_type]) if given is None else given,
    }
    detail.update(changes)
    detail["hmac"] = signature(detail_type, detail, sender.key)
    return {"source": SOURCE, "detail-type": detail_type, "detail": detail}


class BadEvents:
    """Draws bad events of every kind, from genuine ones where that is what an attacker or a network has.

    `victim` is a node of the run; `neighbour` another one, with a key of its own; `last_sequence` is the newest that
    the table knows of the victim, and `seen` are events that were applied.
    """

    def __init__(self, seed: int, victim: Sender, neighbour: Sender, last_sequence: int, seen: list[Event]) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - a seed is the point
        self._victim = victim
        self._neighbour = neighbour
        self._last_sequence = last_sequence
        self._seen = seen
        self._sequence = last_sequence + 1
        self.kinds: dict[str, Callable[[], Event]] = {
            "forged": self._forged,
            "signed by a neighbour": self._signed_by_a_neighbour,
            "of a foreign run": self._foreign,
            "of another attempt": self._of_another_attempt,
            "replayed": lambda: copy.deepcopy(self._chance.choice(self._seen)),
            "replayed under a new number": self._renumbered,
            "stale telemetry": self._stale,
            "changed after it was signed": self._changed,
            "oversize": self._oversize,
            "of a wrong type, signed": self._of_wrong_type,
            "of a wrong form, signed": self._of_wrong_form,
            "of another source or type": self._of_another_source,
        }

    def draw(self, kind: str) -> Event:
        """Return one event of the kind."""
        return self.kinds[kind]()

    def _type(self) -> str:
        return self._chance.choice(tuple(BODIES))

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _genuine(self) -> Event:
        return signed(self._victim, self._type(), self._next())

    def _forged(self) -> Event:
        event = self._genuine()
        guess = "".join(self._chance.choices("0123456789abcdef", k=64))
        event["detail"]["hmac"] = self._chance.choice((guess, "0" * 64, "", None, event["detail"]["hmac"][:-1]))
        return event

    def _signed_by_a_neighbour(self) -> Event:
        neighbour, victim = self._neighbour, self._victim
        liar = Sender(victim.run_id, victim.node_id, victim.attempt, neighbour.key)
        return signed(liar, self._type(), self._next())

    def _foreign(self) -> Event:
        name = self._chance.choice((f"{self._victim.run_id}0", self._victim.run_id[:-1], "another-run"))
        return signed(self._victim, self._type(), self._next(), run_id=name)

    def _of_another_attempt(self) -> Event:
        attempts = [one for one in (0, 1, 2, 3, 1000, -1) if one != self._victim.attempt]
        return signed(self._victim, self._type(), self._next(), attempt=self._chance.choice(attempts))

    def _renumbered(self) -> Event:
        event = copy.deepcopy(self._chance.choice(self._seen))
        event["detail"]["sequence"] = self._next()
        return event

    def _stale(self) -> Event:
        return signed(self._victim, self._chance.choice(TELEMETRY), self._chance.randint(1, self._last_sequence))

    def _changed(self) -> Event:
        event = self._genuine()
        part = self._chance.choice((event["detail"], event["detail"]["body"]))
        name = self._chance.choice([name for name in part if part[name] is not None])
        part[name] = self._another(part[name])
        return event

    def _oversize(self) -> Event:
        return signed(self._victim, "Job Failed", self._next(), {"reason": "x" * self._chance.randint(16_400, 200_000)})

    def _of_wrong_type(self) -> Event:
        name = self._chance.choice(("version", "event_id", "run_id", "attempt", "node_id", "sequence", "sent_at"))
        if self._chance.random() < 0.5:
            return signed(
                self._victim, self._type(), self._next(), **{name: self._odd(1 if name == "version" else None)}
            )
        detail_type = self._type()
        body = copy.deepcopy(BODIES[detail_type])
        field = self._chance.choice([name for name in body if body[name] is not None])
        is_text = isinstance(body[field], str)
        body[field] = self._chance.choice(
            (1, 1.0, True, [1], {"a": 1}) if is_text else ("1", 1.5, 1.0, True, -1, {"a": 1})
        )
        return signed(self._victim, detail_type, self._next(), body)

    def _of_wrong_form(self) -> Event:
        detail_type = self._type()
        body = copy.deepcopy(BODIES[detail_type])
        spoil = self._chance.randrange(4)
        if spoil == 0:
            return signed(self._victim, detail_type, self._next(), {**body, "extra": 1})
        if spoil == 1:
            return signed(self._victim, detail_type, self._next(), body, extra="field")
        if spoil == 2:
            return signed(self._victim, detail_type, self._next(), self._chance.choice(([], "text", 7, [body])))
        return {**signed(self._victim, detail_type, self._next()), "detail": self._chance.choice((None, [], "", 7, {}))}

    def _of_another_source(self) -> Event:
        event = self._genuine()
        name = self._chance.choice(("source", "detail-type"))
        event[name] = self._chance.choice(
            ("headrace.run", "aws.ec2", "", "job done", "Job  Done", "Job Done ", "x" * 128)
        )
        return event

    def _odd(self, equal: Any) -> Any:
        return self._chance.choice([value for value in ODD_VALUES if value is not equal and value != "1"])

    def _another(self, value: Any) -> Any:
        return self._chance.choice([odd for odd in ODD_VALUES if odd != value or type(odd) is not type(value)])
