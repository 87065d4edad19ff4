#!/bin/sh
# Unpacks the musl of Debian 13 for an architecture into a folder: musl.sh <mirror> <amd64|arm64> <folder>
set -eu
file=$(curl -fsS "$1/dists/trixie/main/binary-$2/Packages.xz" | xz -dc | awk -v RS= '/^Package: musl\n/' | sed -n 's/^Filename: //p')
package=$(mktemp)
curl -fsS -o "$package" "$1/$file"
dpkg-deb -x "$package" "$3"
rm "$package"
