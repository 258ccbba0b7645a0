//! Distribution without cargo: a static program as tarball, Debian package and container image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::demo::target;
use crate::setup::{Package, provide, setup};
use crate::sh::{self, Failure, Outcome};

/// A target with a C library that can be linked statically.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const STATIC: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const TOOLS: [Package; 2] = [&["dpkg-dev"], &["podman"]];

const UNITS: [&str; 3] = ["spray-recv@.service", "spray-serve@.service", "spray-tunnel@.service"];

/// `cargo xtask dist`: writes all of them to `target/dist`, and prints their paths.
pub fn dist() -> Outcome {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Failure::unable("packages are built on x86-64 only; elsewhere use `cargo xtask build`"));
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

fn program(folder: &Path) -> Outcome<PathBuf> {
    let mut build = sh::cargo();
    build
        .args(["build", "--release", "--package", "spray", "--target", TARGET])
        .arg("--target-dir")
        .arg(folder.join("build"));
    // A static glibc has no `dlsym`, without which `getrandom` would read /dev/random.
    sh::run(build.env(STATIC, "-Ctarget-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\""))?;
    Ok(folder.join("build").join(TARGET).join("release/spray"))
}

/// Lays out the files as in `/`.
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
    // Checks that it runs without any other file, including /dev.
    let key = stage.join("key");
    sh::run(Command::new("chroot").arg(stage).args(["/usr/bin/spray", "keygen", "/key"]))?;
    fs::remove_file(&key).map_err(|error| Failure::of_file(&key, &error))?;
    sh::run(Command::new(&spray).arg("man").arg(&man))?;
    let completions = [
        ("bash", "bash-completion/completions/spray"),
        ("zsh", "zsh/vendor-completions/_spray"),
        ("fish", "fish/vendor_completions.d/spray.fish"),
    ];
    for (shell, file) in completions {
        let script = sh::capture(&spray, &["completions", shell]);
        sh::write(&share.join(file), &script.ok_or_else(|| Failure::failed(format!("no completions for {shell}")))?)?;
    }
    for (name, file) in [("settings", "settings.md"), ("results", "results.md"), ("schema", "scenario.schema.json")] {
        let text = sh::capture(&spray, &["explain", name]);
        sh::write(&doc.join(file), &text.ok_or_else(|| Failure::failed(format!("`spray explain {name}` failed")))?)?;
    }
    let documents =
        "README.md CHANGELOG.md CITATION.cff LICENSE-MIT LICENSE-APACHE docs deploy tests/scenarios tests/failures";
    // With their folders, because documents refer to them by path.
    sh::run(Command::new("cp").args(["-r", "--parents"]).args(documents.split(' ')).arg(&doc).current_dir(&root))?;
    let units = stage.join("usr/lib/systemd/system");
    fs::create_dir_all(&units).map_err(|error| Failure::of_file(&units, &error))?;
    for unit in UNITS {
        sh::run(Command::new("install").args(["-m", "644"]).arg(root.join("deploy/systemd").join(unit)).arg(&units))?;
    }
    let licences =
        ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| fs::read_to_string(root.join(name)).unwrap_or_default());
    sh::write(&doc.join("copyright"), licences.join("\n\n"))
}

/// Builds the libfabric provider, for `FI_PROVIDER_PATH`, with the C library of this system.
fn install_provider(stage: &Path) -> Outcome {
    sh::run(sh::cargo().args(["build", "--release", "--package", "spray-libfabric"]))?;
    let (library, folder) = (target().join("release/libspray_fi.so"), stage.join("usr/lib/spray"));
    fs::create_dir_all(&folder).map_err(|error| Failure::of_file(&folder, &error))?;
    sh::run(Command::new("install").args(["-m", "644", "--strip"]).args([&library, &folder]))
}

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
    sh::write(&tree.join("DEBIAN/control"), control)?;
    sh::run(Command::new("gzip").args(["--best", "--no-name", "--recursive"]).arg(tree.join("usr/share/man")))?;
    sh::run(Command::new("chmod").args(["--recursive", "u=rwX,go=rX"]).arg(&tree))?;
    sh::run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).args([&tree, &file]))?;
    Ok(file)
}

/// Builds the image for `podman load` and `docker load`.
fn image(folder: &Path, stage: &Path) -> Outcome<PathBuf> {
    let (file, name) = (folder.join(format!("spray-{VERSION}-x86_64-image.tar")), format!("localhost/spray:{VERSION}"));
    let recipe = sh::root().join("deploy/Containerfile");
    sh::run(
        Command::new("podman")
            .args(["build", "--quiet", "--tag", &name, "--tag", "localhost/spray:latest", "--file"])
            .args([&recipe, stage]),
    )?;
    // podman does not overwrite an archive.
    let _ = fs::remove_file(&file);
    sh::run(Command::new("podman").args(["save", "--quiet", "--output"]).arg(&file).arg(&name))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the units with `systemd-analyze verify`, with an existing program.
    #[test]
    fn units_are_valid_and_all_are_installed() {
        let units = sh::root().join("deploy/systemd");
        let mut names: Vec<_> =
            fs::read_dir(&units).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, UNITS);
        let folder = std::env::temp_dir().join(format!("spray-units-{}", std::process::id()));
        for name in UNITS {
            let text = fs::read_to_string(units.join(name)).unwrap();
            let file = folder.join(name.replace("@.", "@eth0."));
            sh::write(&file, text.replace("/usr/bin/spray", "/bin/true")).unwrap();
            match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() {
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success() && !said.contains(name.trim_end_matches("@.service")), "{said}");
                }
                Err(_) => eprintln!("SKIPPED: systemd-analyze is not installed"),
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }

    /// The paths of scenarios and failures in documents are those of a package.
    #[test]
    fn files_named_in_documents_are_packaged() {
        for (document, name) in
            [("docs/tutorial.md", "tests/scenarios/flapping.toml"), ("docs/sim.md", "tests/failures/")]
        {
            assert!(fs::read_to_string(sh::root().join(document)).unwrap().contains(name), "{document}");
            assert!(sh::root().join(name).exists(), "{name}");
        }
    }
}
