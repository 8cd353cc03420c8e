#!/bin/sh
# Installs headend from a release: install.sh BASE_URL
#
# BASE_URL/SHA256SUMS lists the files, and BASE_URL/SHA256SUMS.minisig is its signature. Nothing is installed unless the
# signature is by the release key, and the file has the listed checksum.
#
#   HEADEND_KEY     the release key: a line of minisign's .pub file. Get it from a place that BASE_URL does not control
#   HEADEND_PREFIX  where bin/headend and share/headend go, by default /usr/local for root and ~/.local for others
#
# Needs curl or wget, sha256sum or shasum, tar, gzip, and one of minisign, rsign and OpenSSL 3 for the signature.
set -eu
umask 022

fail() {
    echo "install.sh: $*" >&2
    echo "install.sh: nothing was installed" >&2
    exit 1
}

if [ $# -ne 1 ] || [ "$1" = --help ]; then
    echo "usage: HEADEND_KEY=KEY install.sh BASE_URL" >&2
    exit 2
fi
base=${1%/}
key=${HEADEND_KEY:-}
[ -n "$key" ] || fail "HEADEND_KEY is not set; give the release key, the second line of the file minisign.pub"

case "$(uname -s) $(uname -m)" in
"Linux x86_64" | "Linux amd64") arch=x86_64 ;;
"Linux aarch64" | "Linux arm64") arch=aarch64 ;;
*) fail "there is no binary for $(uname -s) on $(uname -m); build headend from its source" ;;
esac
file=headend-$arch-unknown-linux-musl.tar.gz

if [ -n "${HEADEND_PREFIX:-}" ]; then
    prefix=$HEADEND_PREFIX
elif [ "$(id -u)" = 0 ]; then
    prefix=/usr/local
else
    prefix=$HOME/.local
fi

work=$(mktemp -d) || fail "no temporary directory"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --max-filesize 100000000 --output "$work/$1" "$base/$1"
    elif command -v wget >/dev/null; then
        wget --quiet --output-document="$work/$1" "$base/$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "cannot fetch $base/$1"
}

# The signature of a file by OpenSSL: minisign signs the BLAKE2b-512 digest of the file by Ed25519 (algorithm "ED").
by_openssl() {
    openssl base64 -d -A <"$work/key" >"$work/key.bin" 2>/dev/null || return 1
    sed -n 2p "$1.minisig" | openssl base64 -d -A >"$work/sig.bin" 2>/dev/null || return 1
    [ "$(wc -c <"$work/key.bin")" -eq 42 ] && [ "$(wc -c <"$work/sig.bin")" -eq 74 ] || return 1
    [ "$(head -c 2 "$work/sig.bin")" = ED ] || return 1
    # The key's number is in both.
    tail -c +3 "$work/key.bin" | head -c 8 >"$work/key.id"
    tail -c +3 "$work/sig.bin" | head -c 8 | cmp -s - "$work/key.id" || return 1
    # The key as SubjectPublicKeyInfo (RFC 8410).
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 "$work/key.bin"; } >"$work/key.der"
    tail -c 64 "$work/sig.bin" >"$work/sig.raw"
    openssl dgst -blake2b512 -binary "$1" >"$work/digest" || return 1
    openssl pkeyutl -verify -rawin -pubin -keyform DER -inkey "$work/key.der" -sigfile "$work/sig.raw" \
        -in "$work/digest" >/dev/null 2>&1
}

printf '%s\n' "$key" >"$work/key"
fetch SHA256SUMS
fetch SHA256SUMS.minisig
sums=$work/SHA256SUMS
if command -v minisign >/dev/null; then
    minisign -Vqm "$sums" -P "$key" >/dev/null 2>&1 || fail "$base/SHA256SUMS is not signed by the release key"
elif command -v rsign >/dev/null; then
    rsign verify -q -P "$key" -x "$sums.minisig" "$sums" >/dev/null 2>&1 ||
        fail "$base/SHA256SUMS is not signed by the release key"
elif command -v openssl >/dev/null && openssl dgst -blake2b512 /dev/null >/dev/null 2>&1; then
    by_openssl "$sums" || fail "$base/SHA256SUMS is not signed by the release key"
else
    fail "no program can verify the signature; install minisign"
fi

wanted=$(awk -v file="$file" '$2 == file || $2 == "*" file { print $1; exit }' "$sums")
[ -n "$wanted" ] || fail "$base/SHA256SUMS does not list $file"
fetch "$file"
if command -v sha256sum >/dev/null; then
    found=$(sha256sum <"$work/$file" | awk '{ print $1 }')
else
    found=$(shasum -a 256 <"$work/$file" | awk '{ print $1 }')
fi
[ "$found" = "$wanted" ] || fail "$file has the checksum $found, and the release lists $wanted"

mkdir "$work/tree"
tar -xzf "$work/$file" -C "$work/tree" || fail "$file cannot be unpacked"
new=$(find "$work/tree" -type f -name headend | head -n 1)
[ -n "$new" ] || fail "$file has no headend"
chmod 755 "$new"
version=$("$new" --version) || fail "the binary does not run here"
mkdir -p "$prefix/bin" || fail "cannot make $prefix/bin"
# A full disk fails before the old binary is replaced.
cp "$new" "$prefix/bin/.headend.new" 2>/dev/null || {
    rm -f "$prefix/bin/.headend.new"
    fail "cannot write to $prefix/bin"
}
mv -f "$prefix/bin/.headend.new" "$prefix/bin/headend" || fail "cannot replace $prefix/bin/headend"
page=${new%/headend}/headend-trace.html
mkdir -p "$prefix/share/headend" && cp "$page" "$prefix/share/headend/.headend-trace.new" &&
    mv -f "$prefix/share/headend/.headend-trace.new" "$prefix/share/headend/headend-trace.html" ||
    echo "cannot write $prefix/share/headend/headend-trace.html, the web page of headend trace" >&2
echo "$version is in $prefix/bin/headend"
case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) echo "$prefix/bin is not in PATH" ;;
esac
