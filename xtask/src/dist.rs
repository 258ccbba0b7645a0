//! What runs without cargo: a static program, in a tarball, a Debian package and a container image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::demo::target;
use crate::setup::{Package, provide, setup};
use crate::sh::{self, Failure, Outcome};

/// The target whose C library may be linked statically.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const STATIC: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const TOOLS: [Package; 2] = [&["dpkg-dev"], &["podman"]];

/// `cargo xtask dist`: writes all of them to `target/dist`, and says where they are.
pub fn dist() -> Outcome {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Failure::unable(
            "packages are made on x86-64 only: elsewhere `cargo xtask build` builds the program",
        ));
    }
    setup()?;
    provide(&TOOLS)?;
    let folder = target().join("dist");
    let stage = folder.join("root");
    install(&program(&folder)?, &stage)?;
    install_provider(&stage)?;
    let made = [tarball(&folder, &stage)?, package(&folder, &stage)?, image(&folder, &stage)?];
    made.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

/// Builds `spray` without a library that it would look for when it starts.
fn program(folder: &Path) -> Outcome<PathBuf> {
    let mut build = sh::cargo();
    build
        .args(["build", "--release", "--package", "spray", "--target", TARGET])
        .args(crate::demo::ALL_FEATURES)
        .arg("--target-dir")
        .arg(folder.join("build"));
    sh::run(build.env(STATIC, "-Ctarget-feature=+crt-static"))?;
    Ok(folder.join("build").join(TARGET).join("release/spray"))
}

/// Lays out the files as they lie in `/`.
fn install(program: &Path, stage: &Path) -> Outcome {
    let (share, root) = (stage.join("usr/share"), sh::root());
    let (bin, man, doc) = (stage.join("usr/bin"), share.join("man/man1"), share.join("doc/spray"));
    if stage.exists() {
        fs::remove_dir_all(stage).map_err(|error| Failure::of_file(stage, &error))?;
    }
    for folder in [&bin, &man, &doc] {
        fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
    }
    let spray = bin.join("spray");
    sh::run(Command::new("install").args(["-m", "755", "--strip"]).args([program, &spray]))?;
    sh::run(Command::new(&spray).arg("man").arg(&man))?;
    let completions = [
        ("bash", "bash-completion/completions/spray"),
        ("zsh", "zsh/vendor-completions/_spray"),
        ("fish", "fish/vendor_completions.d/spray.fish"),
    ];
    for (shell, file) in completions {
        let script = sh::capture(&spray, &["completions", shell]);
        write(&share.join(file), &script.ok_or_else(|| Failure::failed(format!("no completions for {shell}")))?)?;
    }
    let documents = [
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "docs",
        "deploy",
        "tests/scenarios",
    ]
    .map(|name| root.join(name));
    sh::run(Command::new("cp").arg("-r").args(documents).arg(&doc))?;
    let licences =
        ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| fs::read_to_string(root.join(name)).unwrap_or_default());
    write(&doc.join("copyright"), &licences.join("\n\n"))
}

/// The provider, for `FI_PROVIDER_PATH`: a program's libfabric loads it, with that program's C library.
fn install_provider(stage: &Path) -> Outcome {
    sh::run(sh::cargo().args(["build", "--release", "--package", "spray-libfabric"]))?;
    let (library, folder) = (target().join("release/libspray_fi.so"), stage.join("usr/lib/spray"));
    fs::create_dir_all(&folder).map_err(|error| Failure::of_file(&folder, &error))?;
    sh::run(Command::new("install").args(["-m", "644", "--strip"]).args([&library, &folder]))
}

/// The staged files under one folder, which may lie anywhere.
fn tarball(folder: &Path, stage: &Path) -> Outcome<PathBuf> {
    let (name, file) =
        (format!("spray-{VERSION}-x86_64-linux"), folder.join(format!("spray-{VERSION}-x86_64-linux.tar.gz")));
    let moved = format!("s,^usr,{name},");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--sort=name", "--transform", &moved, "--file"])
        .arg(&file);
    sh::run(tar.arg("--directory").arg(stage).arg("usr"))?;
    Ok(file)
}

fn package(folder: &Path, stage: &Path) -> Outcome<PathBuf> {
    let (file, tree) = (folder.join(format!("spray_{VERSION}_amd64.deb")), folder.join("deb"));
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| Failure::of_file(&tree, &error))?;
    }
    sh::run(Command::new("cp").arg("-r").args([stage, &tree]))?;
    let bytes = sh::capture("du", &["--summarize", "-k", &tree.display().to_string()]).unwrap_or_default();
    let kilobytes = bytes.split_whitespace().next().unwrap_or("0");
    let control = format!(
        "Package: spray\nVersion: {VERSION}\nArchitecture: amd64\nInstalled-Size: {kilobytes}\nMaintainer: the spray developers <spray@localhost>\nSection: net\n\
         Priority: optional\nRecommends: libelf1, zlib1g\nDescription: multipath NIC dataplane on AF_XDP, with an emulated fabric\n Chooses the path of every packet \
         (REPS, Flowcut and others) over AF_XDP,\n and emulates datacentre fabrics with XDP programs on veth or in a simulator.\n"
    );
    write(&tree.join("DEBIAN/control"), &control)?;
    sh::run(Command::new("gzip").args(["--best", "--no-name", "--recursive"]).arg(tree.join("usr/share/man")))?;
    sh::run(Command::new("chmod").args(["--recursive", "u=rwX,go=rX"]).arg(&tree))?;
    sh::run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).args([&tree, &file]))?;
    Ok(file)
}

/// The image, as `podman load` and `docker load` take it.
fn image(folder: &Path, stage: &Path) -> Outcome<PathBuf> {
    let (file, name) = (folder.join(format!("spray-{VERSION}-x86_64-image.tar")), format!("localhost/spray:{VERSION}"));
    let recipe = sh::root().join("deploy/Containerfile");
    sh::run(
        Command::new("podman")
            .args(["build", "--quiet", "--tag", &name, "--tag", "localhost/spray:latest", "--file"])
            .args([&recipe, stage]),
    )?;
    // It does not overwrite an archive.
    let _ = fs::remove_file(&file);
    sh::run(Command::new("podman").args(["save", "--quiet", "--output"]).arg(&file).arg(&name))?;
    Ok(file)
}

fn write(file: &Path, text: &str) -> Outcome {
    let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    made.map_err(|error| Failure::of_file(file, &error))
}
