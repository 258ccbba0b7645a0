#!/bin/bash
# Runs systemd as PID 1 of new namespaces, with the packaged units and little else, until it receives SIGTERM.
# Usage: unshare --mount bash boot.sh FOLDER SPRAY UNITS
set -e
folder=$1 spray=$2 units=$3
if [ "$4" != inner ]; then
  # In a new mount namespace: a control group, in which namespaces are created, and whose removal ends the run.
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$folder"
  mkdir "$folder/cgroup"
  mount -t cgroup2 cgroup2 "$folder/cgroup"
  group=$folder/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/spray-test-$$
  mkdir "$group"
  end() {
    kill -9 "$!"
    while [ -d "$group" ]; do
      find "$group" -depth -type d -exec rmdir {} + || sleep 0.1
    done
    exit 0
  }
  trap 'end 2> /dev/null' TERM
  (echo $BASHPID > "$group/cgroup.procs"
    exec unshare --pid --fork --kill-child --mount --net --cgroup --ipc --uts bash "$0" "$@" inner) &
  wait
  exit 1
fi
mount --make-rprivate /
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
# All users may open it, as by the rules of udev, which does not run on every machine.
mount -t tmpfs tmpfs /dev/net
mknod -m 0666 /dev/net/tun c 10 200
mkdir "$folder"/{usr,usr-work,etc,etc-work,lib,units}
mount -t overlay overlay -o lowerdir=/usr,upperdir="$folder/usr",workdir="$folder/usr-work" /usr
mount -t overlay overlay -o lowerdir=/etc,upperdir="$folder/etc",workdir="$folder/etc-work" /etc
mount --bind "$folder/lib" /var/lib
mkdir /var/lib/systemd
mount -t tmpfs tmpfs /run
# systemd mounts the credentials of a service in a namespace of its own, and needs the mount here too.
mount --make-rshared /
cp "$spray" /usr/bin/spray
cp "$units"/spray-*@.service "$folder/units"
for target in basic sysinit shutdown network-online multi-user; do
  printf '[Unit]\nDescription=%s\n' "$target" > "$folder/units/$target.target"
done
for unit in recv serve tunnel; do
  mkdir "$folder/units/spray-$unit@.service.d"
  # In place of the journal.
  printf '[Service]\nStandardOutput=append:/run/%s\nStandardError=append:/run/%s\n' "$unit" "$unit" \
    > "$folder/units/spray-$unit@.service.d/output.conf"
done
ip netns add far
ip link add eth0 type veth peer name eth0 netns far
ip address add 10.0.0.1/24 dev eth0
ip -n far address add 10.0.0.2/24 dev eth0
ip link set lo up
ip link set eth0 up
ip -n far link set lo up
ip -n far link set eth0 up
mkdir -p /etc/spray
spray keygen /etc/spray/key > /dev/null
export container=other SYSTEMD_UNIT_PATH="$folder/units"
exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=no
