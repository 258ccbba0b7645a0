# The Debian package in clean roots: installed, run, and taken away again. $1: the roots; $2: where the package is.
. "$HERE/common.sh"
package=$(ls -t "$2"/*.deb | head -n 1)
echo "version: $(basename "$package"), $(($(stat -c %s "$package") >> 20)) MiB, $(($(dpkg-deb --field "$package" Installed-Size) >> 10)) MiB installed"
echo "command: dpkg -i spray.deb; spray init a.toml; spray run a.toml --engine sim; spray run a.toml; dpkg -r spray"
for root in "$1"/*; do
    system=$(. "$root/etc/os-release" && echo "$PRETTY_NAME")
    cp "$package" "$root/spray.deb"
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sys "$root/sys"
    mount -t bpf bpf "$root/sys/fs/bpf"
    mount -t tmpfs tmp "$root/tmp"
    chroot "$root" sh -euc '
        dpkg -i /spray.deb > /tmp/dpkg.txt
        spray --version
        cd /tmp
        spray init a.toml
        spray run a.toml --engine sim --out sim
        spray run a.toml --seeds 1 --balancer reps --out packets
        ls /usr/share/man/man1/spray-run.1* /usr/lib/spray/libspray_fi.so
        bash -c ". /usr/share/bash-completion/completions/spray && complete -p spray"
        dpkg -r spray
        ! ls /usr/bin/spray /usr/share/doc/spray' > said 2>&1 || { cat said; exit 1; }
    echo "result: $system: it runs in the simulator and with real packets, has its manual, completions and provider, and leaves nothing"
    umount -R "$root"
done
