//! Third-party programs with `spray`, from Debian or PyPI, in temporary namespaces.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::Package;
use crate::sh::{self, Failure, Outcome};
use crate::{demo, setup};

struct Program {
    /// The name of its section in the page.
    name: &'static str,
    /// A script in `programs` with its arguments; see `place` for folders.
    command: &'static str,
    packages: &'static [Package],
    /// Python packages for a virtual environment; empty to use Debian's Python.
    python: &'static [&'static str],
}

const fn program(name: &'static str, command: &'static str, packages: &'static [Package]) -> Program {
    Program { name, command, packages, python: &[] }
}

const fn in_python(name: &'static str, command: &'static str, python: &'static [&'static str]) -> Program {
    Program { name, command, packages: &[&["python3-venv"]], python }
}

const PROGRAMS: [Program; 11] = [
    program("open-mpi-4", "mpi.sh mpirun.openmpi /usr/bin/python3 rsh", &[&["openmpi-bin"], &["python3-mpi4py"]]),
    in_python("open-mpi-5", "mpi.sh BIN/mpirun BIN/python3 prte", &["openmpi", "mpi4py"]),
    in_python("mpich", "mpi.sh BIN/mpirun BIN/python3 hydra", &["mpich", "mpi4py"]),
    program("fabtests", "fabtests.sh FABTESTS TRIED/fabtests/built", FOR_FABTESTS),
    program("mpi-fabric", "mpi_fabric.sh", &[&["openmpi-bin"], &["python3-mpi4py"]]),
    program("training", "training.sh 8 ROOT/docs/images/training.svg", FOR_TRAINING),
    program("training-4", "training.sh 4", FOR_TRAINING),
    program("tunnel", "tunnel.sh", &[&["iperf3"], &["redis-server"], &["redis-tools"], &["iputils-ping"]]),
    program("prometheus", "prometheus.sh", &[&["prometheus"]]),
    in_python("tables", "tables.sh BIN/python3", &["polars", "pandas", "pyarrow", "duckdb"]),
    program(PACKAGES, "packages.sh TRIED/packages/roots OURS/dist", &[&["debootstrap"]]),
];

const FOR_FABTESTS: &[Package] =
    &[&["libfabric-dev"], &["libfabric-bin"], &["autoconf"], &["automake"], &["libtool"], &["make"], &["gcc"]];
const FOR_TRAINING: &[Package] = &[&["python3-torch"], &["python3-matplotlib"], &["iputils-ping"]];
const PACKAGES: &str = "packages";

/// `cargo xtask programs [NAME..]`: tries the programs with these prefixes, or all.
pub fn programs(names: &[String]) -> Outcome {
    let chosen =
        |program: &&Program| names.is_empty() || names.iter().any(|name| program.name.starts_with(name.as_str()));
    let mut wanted: Vec<&Program> = PROGRAMS.iter().filter(chosen).collect();
    if wanted.is_empty() {
        let known = PROGRAMS.map(|program| program.name).join(", ");
        return Err(Failure::unable(format!("no such program; allowed: {known}")));
    }
    if !sh::is_root() {
        return Err(Failure::unable(
            "programs run in network namespaces, which takes root: sudo -E cargo xtask programs",
        ));
    }
    if sources().is_none() && wanted.iter().any(|program| program.name == "fabtests") {
        let missing = "FABTESTS must name the folder `fabtests` of libfabric's source tree, of the installed version \
                       (fi_info --version): download that release, then sudo -E FABTESTS=FOLDER cargo xtask programs fabtests";
        if !names.is_empty() {
            return Err(Failure::unable(missing));
        }
        eprintln!("SKIPPED: fabtests. {missing}");
        wanted.retain(|program| program.name != "fabtests");
    }
    let spray = demo::build()?;
    sh::run(sh::cargo().args(["build", "--release", "--package", "spray-libfabric"]))?;
    wanted.iter().try_for_each(|program| program.run(&spray))
}

impl Program {
    fn run(&self, spray: &Path) -> Outcome {
        setup::provide(self.packages)?;
        if self.name == PACKAGES {
            roots()?;
        }
        let python = folder().join(self.name).join("python");
        if !self.python.is_empty() && !python.exists() {
            sh::run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
            let install = ["-m", "pip", "install", "--quiet"];
            sh::run(Command::new(python.join("bin/python3")).args(install).args(self.python))?;
        }
        let work = folder().join(self.name).join("work");
        drop(std::fs::remove_dir_all(&work));
        std::fs::create_dir_all(&work).map_err(|error| Failure::of_file(&work, &error))?;
        let (here, bin) = (sh::root().join("xtask/src/programs"), python.join("bin"));
        let mut words = self.command.split(' ');
        let script = words.next().unwrap_or_default();
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
        command.arg(here.join(script)).args(words.map(|word| place(word, &bin)));
        command.env("SPRAY", spray).env("PROVIDERS", demo::target().join("release"));
        command.env("ROOT", sh::root()).env("HERE", here).env("WORK", &work);
        let mut output = String::new();
        let is_well = sh::run_lines(&mut command, |line| output.extend([line, "\n"]))?;
        if !is_well {
            return Err(Failure::failed(format!(
                "{}: {script} ended with an error; see {}",
                self.name,
                work.display()
            )));
        }
        let lines =
            |kind: &'static str| output.lines().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(": "));
        let (versions, commands) = (lines("version"), lines("command"));
        let versions = versions.map(|version| format!("Version: {version}\n\n"));
        let commands = commands.map(|command| format!("```\n{command}\n```\n\n"));
        let results = lines("result").map(|result| format!("- {result}\n"));
        sh::fill("docs/results/programs.md", self.name, &versions.chain(commands).chain(results).collect::<String>())
    }
}

/// Expands the folder at the start of an argument.
fn place(word: &str, bin: &Path) -> PathBuf {
    let (folder, rest) = word.split_once('/').unwrap_or((word, ""));
    let folder = match folder {
        "ROOT" => sh::root(),
        "OURS" => demo::target(),
        "TRIED" => self::folder(),
        "FABTESTS" => sources().unwrap_or_default(),
        "BIN" => bin.into(),
        _ => return word.into(),
    };
    if rest.is_empty() { folder } else { folder.join(rest) }
}

/// Builds the package, and root file systems with only the base of a distribution.
fn roots() -> Outcome {
    crate::dist::dist()?;
    let roots = folder().join("packages/roots");
    std::fs::create_dir_all(&roots).map_err(|error| Failure::of_file(&roots, &error))?;
    // Debian lacks Ubuntu's keys. All its releases use the script of `gutsy`, which has their
    // mirror.
    let systems: [(&str, &[&str], &[&str]); 2] =
        [("trixie", &[], &[]), ("noble", &["--no-check-gpg"], &["", "/usr/share/debootstrap/scripts/gutsy"])];
    for (system, how, from) in systems {
        let (root, made) = (roots.join(system), roots.join(format!("{system}.part")));
        if !root.exists() {
            drop(std::fs::remove_dir_all(&made));
            let mut command = Command::new("debootstrap");
            sh::run(command.arg("--variant=minbase").args(how).arg(system).arg(&made).args(from))?;
            std::fs::rename(&made, &root).map_err(|error| Failure::of_file(&root, &error))?;
        }
    }
    Ok(())
}

fn sources() -> Option<PathBuf> {
    std::env::var_os("FABTESTS").map(PathBuf::from).filter(|folder| folder.join("autogen.sh").exists())
}

fn folder() -> PathBuf {
    sh::root().join("target/programs")
}
