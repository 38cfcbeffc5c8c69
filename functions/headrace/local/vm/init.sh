#!/usr/bin/busybox sh
# The first process of a guest: mounts, two networks from the kernel's command line, then the guest agent.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount() { busybox mount "$@"; }
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run /tmp; chmod 1777 /tmp; mount -t devpts pts /dev/pts; mount -t tmpfs run /run; mount -t tmpfs shm /dev/shm
mount -t configfs none /sys/kernel/config 2>/dev/null
for module in virtio_pci virtio_console virtio_net virtio_rng nvme; do modprobe $module; done
for word in $(cat /proc/cmdline); do case $word in
    headrace.name=*) name=${word#*=} ;;
    headrace.address=*) address=${word#*=} ;;
esac; done
echo "$name" > /proc/sys/kernel/hostname
ip link set lo up
ip link set eth0 mtu 9001 up; ip addr add "$address/24" dev eth0         # the fabric, with packets as long as in a VPC
[ -e /sys/class/net/eth1 ] && { ip link set eth1 up; ip addr add 10.0.2.15/24 dev eth1; ip route add default via 10.0.2.2; }
i=0; while [ ! -e /dev/vport*p1 ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done
mkdir -p /run/qga /var/lib/headrace-job; chown 900:900 /var/lib/headrace-job
echo "HEADRACE-GUEST-READY $name $(cut -d' ' -f1 /proc/uptime)"
qemu-ga -m virtio-serial -p "$(ls /dev/vport*p1 | head -1)" -t /run/qga -f /run/qga/pid -d
while :; do sleep 3600 & wait $!; done
