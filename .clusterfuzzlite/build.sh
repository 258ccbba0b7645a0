#!/bin/bash -eu
# One program for each target, and its corpus. SANITIZER is set by the service.
cargo xtask fuzz --into "$OUT"
for corpus in fuzz/corpus/*/; do
    name=$(basename "$corpus")
    zip -qjr "$OUT/${name}_seed_corpus.zip" "$corpus"
    printf '[libfuzzer]\nmax_len = 8192\ntimeout = 20\n' > "$OUT/$name.options"
done
