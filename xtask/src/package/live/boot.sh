# Boots a Debian in the namespaces that this shell has already got: boot.sh ROOT.
#
# The kernel's settings and its own file systems stay read-only, because they belong to the host. Those of the network
# namespace can be written, as on a host.
set -eu
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,rw proc/sys/net
if [ -e proc/sysrq-trigger ]; then
    mount --bind proc/sysrq-trigger proc/sysrq-trigger
    mount -o remount,bind,ro proc/sysrq-trigger
fi
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/net dev/pts dev/shm
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
mknod -m 666 dev/net/tun c 10 200
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir .host
pivot_root . .host
umount -l /.host
rmdir /.host
ip link set lo up
exec env -i container=headend-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /usr/lib/systemd/systemd --system --log-target=journal --show-status=false
