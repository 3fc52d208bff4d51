#!/usr/bin/env bash
# Make a release in dist: build the wheels, install them into a new environment, try them there.
#
#   recipes/release.sh [OPTIONS OF PIP INSTALL]
#
# dist then holds both wheels, SHA256SUMS, and sbom.json: all that was installed with them, with
# versions and licences, as CycloneDX. Nothing is published. PYTHON and TORCH name the Python and torch
# to use.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
torch=${TORCH:-torch==2.13.0}
max_bytes=5000000
dist=$PWD/dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/passnet/version.py)

# One version everywhere, and a tag of it if the commit has one.
grep -q "^version = \"$version\"" training/llm/pyproject.toml
grep -q "^version: \"$version\"" CITATION.cff
tag=$(git tag --points-at HEAD 'v*')
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then
  echo "the tag is $tag, but the version is $version" >&2
  exit 1
fi

rm -rf "$dist"
"$python" -m venv "$work/build"
"$work/build/bin/pip" install -q hatchling 'cyclonedx-bom>=7,<8'
for project in . training/llm; do
  (cd "$project" && "$work/build/bin/python" -m hatchling build -t wheel -d "$dist")
done
for wheel in "$dist"/*.whl; do
  if [ "$(stat -c %s "$wheel")" -ge "$max_bytes" ]; then
    echo "$wheel has $max_bytes bytes or more" >&2
    exit 1
  fi
done

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q "$@" "$torch"
"$work/venv/bin/pip" install -q "$@" "$dist"/*.whl
"$work/venv/bin/pip" check

# Outside of the checkout, so that only what was installed is tried.
cd "$work"
passnet="$work/venv/bin/passnet"
"$passnet" --version | grep -q "$version"
"$passnet" suite list demo > suite.txt
"$passnet" examples copy examples
test -f examples/llm/model/model.safetensors
"$passnet" pass check examples/passes/gelu_tanh --suite demo --task gelu_tanh
"$passnet" bench run --suite demo-small --task gelu_tanh --candidate examples/passes/gelu_tanh \
  --seconds 0.1 --out run
"$passnet" report run --out site
"$work/venv/bin/python" -c "import passnet; assert 'optimize' in dir(passnet)"

"$work/build/bin/cyclonedx-py" environment --validate --output-reproducible \
  -o "$dist/sbom.json" "$work/venv/bin/python"
for name in passnet passnet-llm torch; do
  grep -q "\"name\": \"$name\"" "$dist/sbom.json"
done
(cd "$dist" && sha256sum -- *.whl sbom.json > SHA256SUMS)
ls -l "$dist"
