#!/bin/bash
# Makes a machine out of the bundle: the agent's own Python, who it is, a closed door to its keys, and its units.
# The order matters: the deadline is watched before anything else can fail.
set -euo pipefail
trap 'echo "headrace: boot failed in line $LINENO; powering off"; systemctl poweroff' ERR
home=${HEADRACE_HOME:-/opt/headrace} units=${HEADRACE_UNITS:-/etc/systemd/system} bin=${HEADRACE_BIN:-/usr/local/bin}

cp "$home"/systemd/*.service "$home"/systemd/*.timer "$units"/
systemctl daemon-reload
systemctl enable --now headrace-deadline.timer

python3 "$home/boot/describe_node.py"
systemctl enable --now headrace-metadata.service
id -u headrace-job >/dev/null 2>&1 || useradd --system --create-home --home-dir /var/lib/headrace-job \
    --shell /usr/sbin/nologin headrace-job

python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps \
    "$home"/wheels/"$(uname -m)"/*.whl "$home"/wheels/*.whl
mkdir -p "$home/bin"
ln -sf "$home/venv/bin/headrace-agent" "$home/bin/headrace-agent"
ln -sf "$home/venv/bin/headrace-agent" "$bin/headrace-agent"
systemctl enable --now headrace-agent.service
