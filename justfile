# Short names for scripts: `just`, `just check`, `just release`. All works without just, too.

# What can be done.
default:
    @just --list

# Everything that must hold before a change goes in; `just check format lint` runs only the steps named.
check *steps:
    .ci/run {{steps}}

# The tests of one crate: `just test join`.
test crate:
    cargo test --locked -p {{ if crate == "twindex" { "twindex" } else { "twindex-" + crate } }}

# The C interface: header, tests in C, C++, Java and Go.
capi:
    scripts/capi header
    scripts/capi test

# Installs the C library.
install-capi prefix="/usr/local":
    scripts/capi install {{prefix}}

# The command with man pages, completions and a Debian package.
package target="x86_64-unknown-linux-musl" out="target/dist":
    scripts/release package {{target}} {{out}}
    scripts/release package-test {{out}}

# All that a release does, without an upload.
release *steps:
    scripts/release check {{steps}}
