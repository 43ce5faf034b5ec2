# Prints what ptxas -v said of every kernel: registers, shared memory, spills, by architecture.
# Names are mangled by C++: _Z9gemm_wide9gemm_args is gemm_wide.
/Compiling entry function/ {
    split($0, quoted, "'"); name = quoted[2]; arch = quoted[4]
    if (match(name, /^_Z[0-9]+/)) { n = substr(name, 3, RLENGTH - 2) + 0; name = substr(name, RLENGTH + 1, n) }
    else if (match(name, /^_ZN[0-9]+_INTERNAL_[^E]*E?/)) sub(/^_ZN[0-9]+_INTERNAL_[0-9a-f]+_[0-9]+_/, "", name)
}
/bytes spill stores/ { split($0, part, ","); spill = part[2] + part[3] }
/Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    if (!header++) printf "%-28s %-8s %9s %7s %6s\n", "kernel", "for", "registers", "static", "spills"
    printf "%-28s %-8s %9d %7d %6d\n", name, arch, registers, shared, spill
}
