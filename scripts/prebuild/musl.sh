#!/bin/sh
# Unpacks the musl of Debian 13 for an architecture into a folder: musl.sh <amd64|arm64> <folder>
set -eu
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 | tr -d ' ')
file=$(curl -fsS "${mirror%/}/dists/trixie/main/binary-$1/Packages.xz" | xz -dc | awk -v RS= '/^Package: musl\n/' | sed -n 's/^Filename: //p')
package=$(mktemp)
curl -fsS -o "$package" "${mirror%/}/$file"
dpkg-deb -x "$package" "$2"
rm "$package"
