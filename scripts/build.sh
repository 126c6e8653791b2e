#!/bin/bash
# Builds bin/serpcrypt.
. "$(dirname "$0")/common.sh"
need_go
build
