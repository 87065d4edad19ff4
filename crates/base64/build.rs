//! The AVX-512 intrinsics are stable since Rust 1.89; an older compiler builds without that kernel. Also the build script
//! of `crates/json`.

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

/// The 95 of `rustc 1.95.0 (…)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').nth(1)?.parse().ok()
}
