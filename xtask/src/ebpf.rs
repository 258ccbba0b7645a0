//! Builds the XDP programs in `ebpf/` into the objects in the repository, and compares them.
//! Objects contain no paths, so that every clone gives the same bytes with the same tools.

mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use self::record::{FLAGS, OBJECTS};
use crate::setup;
use crate::sh::{self, Failure, Outcome};

const TARGET: &str = "bpfel-unknown-none";
/// Debian's compiler, with a prebuilt `core` for BPF.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_VERSION: (u32, u32) = (1, 96);
/// Set to the root when cargo calls `xtask` as the compiler.
const AS_RUSTC: &str = "XTASK_AS_RUSTC";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    /// Debian's `rustc-web` with `libstd-rust-web-dev-bpf`.
    Debian,
    /// A rustup nightly with rust-src, which builds `core`.
    Nightly,
}

/// `cargo xtask build-ebpf`: rebuilds the objects in the repository, and their record.
pub fn build() -> Outcome {
    let toolchain = compile()?;
    for (name, kept) in OBJECTS {
        sh::write(&sh::root().join(kept), sh::read(&built(name))?)?;
    }
    record::write(&toolchain, &sources()?)
}

/// Rebuilds the objects and compares them with those in the repository. Without the recorded tools
/// they differ, and are only loaded.
pub fn compare() -> Outcome {
    let toolchain = compile()?;
    let recorded = record::toolchain()?;
    if toolchain != recorded {
        println!(
            "the objects in the repository are not compared: they are built with\n{recorded}and this machine has\n{toolchain}"
        );
        return load();
    }
    for (name, kept) in OBJECTS {
        if sh::read(&built(name))? != sh::read(&sh::root().join(kept))? {
            return Err(Failure::failed(format!("{kept} does not match its sources: run `cargo xtask build-ebpf`")));
        }
    }
    println!("the objects in the repository match their sources byte by byte");
    Ok(())
}

fn load() -> Outcome {
    if !sh::is_root() {
        println!("without root they are not loaded either");
        return Ok(());
    }
    let example = ["run", "--package", "spray-switch", "--example", "load_objects", "--"];
    sh::run(sh::cargo().args(example).arg(folder()))
}

/// Builds all objects into [`folder`], with BTF only. Returns the versions of the tools.
fn compile() -> Outcome<String> {
    setup::for_kernel_programs()?;
    let compiler = compiler()?;
    let mut cargo = compiler.cargo();
    cargo
        .current_dir(sh::root().join("ebpf"))
        .args(["build", "--release", "--target", TARGET, "--target-dir"])
        .arg(target());
    // Cargo does not track the effects of `as_rustc`, so everything is rebuilt.
    let _ = fs::remove_dir_all(target());
    let own = std::env::current_exe().map_err(|error| Failure::failed(error.to_string()))?;
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f")).env("RUSTC_WRAPPER", own).env(AS_RUSTC, sh::root());
    // aya would otherwise use the bindings of this machine's architecture.
    cargo.env("AYA_BPF_TARGET_ARCH", "x86_64");
    // The settings of the calling cargo are for another target.
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    sh::run(&mut cargo)?;
    fs::create_dir_all(folder()).map_err(|error| Failure::of_file(&folder(), &error))?;
    for (name, _) in OBJECTS {
        sh::run(Command::new(strip()).arg("--strip-debug").arg(release().join(name)).arg("-o").arg(built(name)))?;
    }
    toolchain(compiler)
}

/// Acts as the compiler if cargo calls this program in its place. Keeps paths of the machine out of
/// objects and of cargo's metadata hash, which determines symbols and the order of functions.
pub fn as_rustc() -> Option<ExitCode> {
    let root = PathBuf::from(std::env::var_os(AS_RUSTC)?);
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next()?;
    let crate_name = ["CARGO_CRATE_NAME", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"];
    let hash = crate_name.map(|name| std::env::var(name).unwrap_or_default()).join("-");
    let mut rustc = Command::new(&program);
    rustc.args(arguments.map(|argument| match argument.strip_prefix("metadata=") {
        Some(_) => format!("metadata={hash}"),
        None => argument,
    }));
    let status =
        rustc.args(remaps(&program, &root)).status().inspect_err(|error| eprintln!("error: {rustc:?}: {error}"));
    let code = status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    Some(ExitCode::from(code.unwrap_or(1)))
}

/// Returns the replacements of this machine's paths. Those of our sources become relative to
/// `ebpf/`, where the linker runs, so that it finds the lines that the verifier quotes.
fn remaps(rustc: &str, root: &Path) -> Vec<String> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let sysroot = PathBuf::from(sh::capture(rustc, &["--print", "sysroot"]).unwrap_or_default());
    let crates = fs::read_dir(setup::cargo_home().join("registry/src")).into_iter().flatten().flatten();
    let mut remaps: Vec<String> = crates.map(|registry| remap(&registry.path(), "/crates")).collect();
    remaps.push(remap(&sysroot.join("lib/rustlib/src/rust"), "/rustc"));
    // The last of several matching rules applies.
    remaps.extend([remap(root, ".."), remap(&root.join("ebpf"), ".")]);
    remaps
}

/// Returns our sources that the compiler read, relative to the root, manifests and lock file.
fn sources() -> Outcome<Vec<String>> {
    let root = format!("{}/", sh::root().display());
    let mut sources = vec!["ebpf/Cargo.lock".to_string()];
    for (name, _) in OBJECTS {
        let list = release().join(name).with_extension("d");
        let text = sh::read_text(&list)?;
        let (_, read) = text.split_once(": ").unwrap_or_default();
        for source in read.split_whitespace().filter_map(|path| path.strip_prefix(&root)) {
            let manifest = source.split_once("/src/").map(|(package, _)| format!("{package}/Cargo.toml"));
            sources.extend(manifest.into_iter().chain([source.to_string()]));
        }
    }
    sources.sort();
    sources.dedup();
    Ok(sources)
}

fn toolchain(compiler: Compiler) -> Outcome<String> {
    let rustc = match compiler {
        Compiler::Debian => sh::capture(DEBIAN_RUSTC, &["--version"]),
        Compiler::Nightly => sh::capture("rustup", &["run", "nightly", "rustc", "--version"]),
    };
    let linker = sh::capture("bpf-linker", &["--version"]);
    let strip = sh::capture(strip(), &["--version"]);
    let llvm = strip.as_ref().and_then(|text| text.split_once("LLVM version ")?.1.lines().next());
    match (rustc, linker, llvm) {
        (Some(rustc), Some(linker), Some(llvm)) => Ok(format!("{rustc}\n{linker}\nLLVM {llvm}\n")),
        _ => Err(Failure::failed("the version of the compiler, the linker or llvm-strip is unknown")),
    }
}

/// Returns Debian's llvm-strip, of the LLVM version of its compiler, or the default one.
fn strip() -> PathBuf {
    let debians = Path::new(setup::LLVM_PREFIX).join("bin/llvm-strip");
    if debians.exists() { debians } else { "llvm-strip".into() }
}

fn target() -> PathBuf {
    folder().join("build")
}

fn release() -> PathBuf {
    target().join(TARGET).join("release")
}

fn folder() -> PathBuf {
    sh::root().join("target/ebpf")
}

fn built(name: &str) -> PathBuf {
    folder().join(name).with_extension("o")
}

fn has_debians() -> bool {
    let core = |root: String| Path::new(&root).join("lib/rustlib").join(TARGET).is_dir();
    sh::rustc_version(DEBIAN_RUSTC).is_some_and(|version| version >= DEBIAN_VERSION)
        && sh::capture(DEBIAN_RUSTC, &["--print", "sysroot"]).is_some_and(core)
}

/// Returns Debian's compiler, which built the objects in the repository, or a nightly.
fn compiler() -> Outcome<Compiler> {
    match (has_debians(), sh::has_nightly()) {
        (true, _) => Ok(Compiler::Debian),
        (false, true) => Ok(Compiler::Nightly),
        (false, false) => Err(Failure::unable(format!(
            "there is no rustc {}.{} or later with {TARGET}. {}",
            DEBIAN_VERSION.0,
            DEBIAN_VERSION.1,
            setup::NIGHTLY_WAY
        ))),
    }
}

impl Compiler {
    fn cargo(self) -> Command {
        match self {
            Self::Nightly => {
                let mut command = sh::nightly_cargo();
                command.arg("-Zbuild-std=core");
                command
            }
            Self::Debian => {
                let mut command = sh::cargo();
                // Allows core_intrinsics, which the atomics are, with a release compiler.
                command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                command
            }
        }
    }
}
