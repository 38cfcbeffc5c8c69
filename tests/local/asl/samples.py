"""Small sets of states that several tests of the interpreter run."""

from __future__ import annotations

WAIT = {"W": {"Type": "Wait", "Seconds": 10, "Output": {"ok": True}, "End": True}}
TOKEN = {
    "T": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": "F", "Payload": {"token": "{% $states.context.Task.Token %}"}},
        "TimeoutSeconds": 600,
        "End": True,
    }
}
BUSY = {
    "T": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": "F", "Payload": {"id": "{% $uuid() %}", "draw": "{% $random() %}"}},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "JitterStrategy": "FULL"}],
        "Next": "C",
    },
    "C": {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": "child"},
        "End": True,
    },
}
