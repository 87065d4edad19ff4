//! Sets `cfg(avx512)` if the compiler has the AVX-512 intrinsics, which are stable since Rust 1.89. Without it there is no
//! such kernel. Cargo runs this script for `crates/base64`, `crates/cpu` and `crates/json`.

use std::env;
use std::process::Command;

const AVX512_STABLE: u32 = 89;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rustc-check-cfg=cfg(avx512)");
    if minor_version().is_some_and(|minor| AVX512_STABLE <= minor) {
        println!("cargo::rustc-cfg=avx512");
    }
}

/// Returns the 95 of `rustc 1.95.0 (…)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').nth(1)?.parse().ok()
}
