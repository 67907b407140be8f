#!/bin/sh
# Fetches again what report pages embed, uPlot at the version of assets/uPlot.version. Needs npm.
# (docs/assets/iframe-worker.js, with which the documentation is searched from disk, is npm's iframe-worker.)
set -eu
cd "$(dirname "$0")/../python/dumbbell/report/assets"
version=$(cat uPlot.version)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
npm pack --silent --pack-destination "$temporary" "uplot@$version" >"$temporary/name"
tar -xzf "$temporary/$(cat "$temporary/name")" -C "$temporary"
cp "$temporary/package/dist/uPlot.iife.min.js" uPlot.min.js
cp "$temporary/package/dist/uPlot.min.css" uPlot.min.css
cp "$temporary/package/LICENSE" uPlot.LICENSE
