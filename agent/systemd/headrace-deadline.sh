#!/bin/sh
# Powers off when the deadline that node.json was given at launch has passed, or when there is none to be read.
at=$(sed -n 's/.*"deadline_at": *"\([^"]*\)".*/\1/p' "$HEADRACE_NODE_FILE" | head -n 1)
end=$(test -n "$at" && date -u -d "$at" +%s)
if test -n "$end" && test "$(date -u +%s)" -lt "$end"; then
    exit 0
fi
echo "headrace: the deadline '${at:-none}' has passed; powering off"
systemctl poweroff || systemctl poweroff --force
