#!/bin/bash
# The same for every machine of a stack, and holds no secret: fetches the bundle that belongs to the stack, starts it.
# Machines are in subnets without internet; S3 is reached over its endpoint. A machine that cannot boot ends itself.
set -euo pipefail
trap 'echo "headrace: boot failed in line $LINENO; powering off"; systemctl poweroff' ERR

home=${HEADRACE_HOME:-/opt/headrace}
metadata=http://169.254.169.254/latest
token=$(curl -sSf --retry 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' $metadata/api/token)
ask() { curl -sSf --retry 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/meta-data/$1"; }

role=$(ask iam/security-credentials/ | head -n 1)
keys=$(ask "iam/security-credentials/$role")
key() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <<<"$keys"; }

# Keys go to curl by its standard input, so that no list of processes shows them. S3 demands the hash of what is sent,
# which is nothing; not every curl adds it.
nothing=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
mkdir -p "$home"
curl -sSf --retry 8 --retry-all-errors --aws-sigv4 "aws:amz:@REGION@:s3" --config - \
    -o "$home/bundle.zip" "https://@BUNDLE_BUCKET@.s3.@REGION@.@DOMAIN@/@BUNDLE_KEY@" <<END
user = "$(key AccessKeyId):$(key SecretAccessKey)"
header = "x-amz-security-token: $(key Token)"
header = "x-amz-content-sha256: $nothing"
END

python3 -m zipfile -e "$home/bundle.zip" "$home"
export HEADRACE_RUN_BUCKET='@RUN_BUCKET@' HEADRACE_NODE_ROLE_ID='@NODE_ROLE_ID@'
exec bash "$home/boot/boot.sh"
