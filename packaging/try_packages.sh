#!/usr/bin/env bash
# Installs the Debian package and the wheel in a fresh Debian of their own, uses them, and removes them:
# try_packages.sh PACKAGES-FOLDER. Needs root and debootstrap; the Debian is made anew each time.
set -euo pipefail

packages=$(realpath "$1")
tree=$(mktemp -d /var/tmp/hcclsim-debian-XXXXXX)
chmod 755 "$tree"  # daemons and man are users of their own
trap 'umount "$tree/proc" 2>/dev/null || true; rm -rf --one-file-system "$tree"' EXIT
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  sed -n "s/^URIs: *//p; s/^deb \\(\\[[^]]*\\] \\)\\?\\(http[^ ]*\\) .*/\\2/p" | head -1 || true)

debootstrap --variant=minbase bookworm "$tree" "${mirror:-http://deb.debian.org/debian}" >/dev/null
rm -f "$tree/etc/apt/sources.list"
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d "$tree/etc/apt/" 2>/dev/null || true
cp /etc/resolv.conf "$tree/etc/" 2>/dev/null || true
echo 'APT::Sandbox::User "root";' >"$tree/etc/apt/apt.conf.d/90root"
echo 'Dpkg::Use-Pty "0";' >>"$tree/etc/apt/apt.conf.d/90root"
mount -t proc proc "$tree/proc"
cp "$packages"/*.deb "$packages"/*.whl "$tree/srv/"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python3 "$here/../tests/data/onnx/write_onnx.py" resnet50 "$tree/srv/resnet50.onnx"

inside() { chroot "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv DEBIAN_FRONTEND=noninteractive "$@"; }
install() { inside apt-get install --yes --no-install-recommends "$@" >/dev/null; }

inside apt-get update >/dev/null
echo "== the Debian package"
inside sh -c 'apt-get install --yes --no-install-recommends /srv/hcclsim_*.deb' >/dev/null
inside hcclsim doctor
inside hcclsim run --model lenet --hcom-parallel on | head -3
inside hcclsim run --model lenet --network simgrid --npus 2 | head -3
inside hcclsim run --model lenet --batch 4 --numerics --iterations 2 | tail -2
inside hcclsim run --model /srv/resnet50.onnx --batch 4 | head -3
install man-db && inside man hcclsim-run | head -3
inside bash -c 'source /usr/share/bash-completion/completions/hcclsim && complete -p hcclsim'
inside sh -c 'apt-get install --yes --no-install-recommends g++ /srv/hcclsim-dev_*.deb' >/dev/null
sed -n '/^```cpp sum.cpp$/,/^```$/p' "$here/../docs/tutorials/9_hccl_program.md" | sed '1d;$d' >"$tree/srv/sum.cpp"
inside sh -c 'cd /srv && g++ -o sum sum.cpp $(hcclsim exec --flags) && hcclsim exec --platform atlas800t-a2 --processes 8 -- ./sum'
inside apt-get purge --yes hcclsim hcclsim-dev >/dev/null
left=$(inside sh -c 'find / -xdev -name "*hcclsim*" ! -path "/srv/*" ! -path "/proc/*" ! -path "/var/*"')
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }

echo "== the wheel"
install python3-venv python3-numpy
inside sh -c 'python3 -m venv --system-site-packages /srv/env && /srv/env/bin/pip install --quiet --no-index --no-deps /srv/*.whl'
inside /srv/env/bin/python -c '
import hcclsim
from hccl.split.api import set_split_strategy_by_size
set_split_strategy_by_size([80, 20])
result = hcclsim.run(model="lenet", hcom_parallel=True)
print(result.step_time_s, result.segments.column("bytes"))
print(hcclsim.run(model="lenet", batch=4, numerics=True, iterations=2).losses())
'
inside /srv/env/bin/hcclsim --version
echo "installed, used, removed"
