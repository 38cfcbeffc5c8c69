"""The quotas of Standard workflows.

Numbers: docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html and workflow-variables.html.
"""

from __future__ import annotations

CAUSE_CHARACTERS = 32_768
PAYLOAD_BYTES = 262_144
VARIABLE_BYTES = 262_144
ALL_VARIABLES_BYTES = 10 * 1024 * 1024
HISTORY_EVENTS = 25_000
DEFINITION_BYTES = 1_048_576
NAME_CHARACTERS = 80
ERROR_CHARACTERS = 256
LONGEST_SECONDS = 99_999_999
"""The longest wait or time-out, and the time-out of a Task that says nothing: more than three years."""
