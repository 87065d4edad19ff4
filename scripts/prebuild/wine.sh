#!/bin/sh
# Runs a Windows program with an unpacked wine: its folder is laid over /usr in a mount namespace of its own, which needs root.
#   wine.sh prepare <debian> <prefix>     makes the prefix, once
#   wine.sh run <debian> <prefix> <program> [arguments]
set -eu
action=$1 debian=$2 WINEPREFIX=$3
shift 3
export WINEPREFIX WINEDEBUG=-all NODE_SKIP_PLATFORM_CHECK=1
system=$WINEPREFIX/drive_c/windows/system32
libraries=$debian/usr/x86_64-w64-mingw32/lib

inside() {
  # shellcheck disable=SC2016
  unshare -m sh -c 'mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr && shift && exec "$@"' sh "$debian" "$@"
}

case $action in
  prepare)
    [ ! -f "$system/kernel32.dll" ] || exit 0
    mkdir -p "$system"
    # Before wineboot: its user32 needs zlib1.dll.
    cp "$libraries/zlib1.dll" "$system/"
    inside x86_64-w64-mingw32-gcc-posix -shared -O1 -s -o "$system/bcryptprimitives.dll" "$(dirname "$0")/bcryptprimitives.c" -ladvapi32
    cp "$system/bcryptprimitives.dll" "$WINEPREFIX/"
    inside timeout 100 /usr/lib/wine/wine64 wineboot -i
    cp "$libraries/zlib1.dll" "$WINEPREFIX/bcryptprimitives.dll" "$system/"
    ;;
  run)
    # node.exe cannot write to a pipe.
    code=0
    inside timeout 120 /usr/lib/wine/wine64 "$@" > "$WINEPREFIX/output.log" 2>&1 || code=$?
    cat "$WINEPREFIX/output.log"
    exit "$code"
    ;;
esac
