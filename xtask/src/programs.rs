//! Programs that nobody here wrote, with `spray`: each as it comes from Debian or for Python, on namespaces that end with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::Package;
use crate::sh::{self, Failure, Outcome};
use crate::{demo, setup};

/// A program, and what it is tried with.
struct Program {
    /// As its section in the page, which says what it is.
    name: &'static str,
    packages: &'static [Package],
    /// What a Python of its own gets; empty: Debian's will do.
    python: &'static [&'static str],
    /// What has to be there first, made with a network.
    before: fn() -> Outcome,
    script: &'static str,
    arguments: fn(&Path) -> Vec<PathBuf>,
}

const PROGRAMS: [Program; 11] = [
    Program {
        name: "open-mpi-4",
        packages: &[&["openmpi-bin"], &["python3-mpi4py"]],
        python: &[],
        before: nothing,
        script: "mpi.sh",
        arguments: |_| vec!["mpirun.openmpi".into(), "/usr/bin/python3".into(), "rsh".into()],
    },
    Program {
        name: "open-mpi-5",
        packages: &[&["python3-venv"]],
        python: &["openmpi", "mpi4py"],
        before: nothing,
        script: "mpi.sh",
        arguments: |bin| vec![bin.join("mpirun"), bin.join("python3"), "prte".into()],
    },
    Program {
        name: "mpich",
        packages: &[&["python3-venv"]],
        python: &["mpich", "mpi4py"],
        before: nothing,
        script: "mpi.sh",
        arguments: |bin| vec![bin.join("mpirun"), bin.join("python3"), "hydra".into()],
    },
    Program {
        name: "fabtests",
        packages: &[
            &["libfabric-dev"],
            &["libfabric-bin"],
            &["autoconf"],
            &["automake"],
            &["libtool"],
            &["make"],
            &["gcc"],
        ],
        python: &[],
        before: nothing,
        script: "fabtests.sh",
        arguments: |_| vec![sources().unwrap_or_default(), folder().join("fabtests/built")],
    },
    Program {
        name: "mpi-fabric",
        packages: &[&["openmpi-bin"], &["python3-mpi4py"]],
        python: &[],
        before: nothing,
        script: "mpi_fabric.sh",
        arguments: |_| vec![],
    },
    Program {
        name: "training",
        packages: TRAINING,
        python: &[],
        before: nothing,
        script: "training.sh",
        arguments: |_| vec!["8".into(), sh::root().join("docs/images/training.svg")],
    },
    Program {
        name: "training-4",
        packages: TRAINING,
        python: &[],
        before: nothing,
        script: "training.sh",
        arguments: |_| vec!["4".into()],
    },
    Program {
        name: "tunnel",
        packages: &[&["iperf3"], &["redis-server"], &["redis-tools"], &["iputils-ping"]],
        python: &[],
        before: nothing,
        script: "tunnel.sh",
        arguments: |_| vec![],
    },
    Program {
        name: "prometheus",
        packages: &[&["prometheus"]],
        python: &[],
        before: nothing,
        script: "prometheus.sh",
        arguments: |_| vec![],
    },
    Program {
        name: "tables",
        packages: &[&["python3-venv"]],
        python: &["polars", "pandas", "pyarrow", "duckdb"],
        before: nothing,
        script: "tables.sh",
        arguments: |bin| vec![bin.join("python3")],
    },
    Program {
        name: "packages",
        packages: &[&["debootstrap"]],
        python: &[],
        before: roots,
        script: "packages.sh",
        arguments: |_| vec![folder().join("packages/roots"), demo::target().join("dist")],
    },
];

const TRAINING: &[Package] = &[&["python3-torch"], &["python3-matplotlib"], &["iputils-ping"]];

/// `cargo xtask programs [NAME..]`: tries those whose name begins so, or all. `docs/results/programs.md` gets what they said.
pub fn programs(names: &[String]) -> Outcome {
    let chosen =
        |program: &&Program| names.is_empty() || names.iter().any(|name| program.name.starts_with(name.as_str()));
    let mut wanted: Vec<&Program> = PROGRAMS.iter().filter(chosen).collect();
    if wanted.is_empty() {
        let known = PROGRAMS.map(|program| program.name).join(", ");
        return Err(Failure::unable(format!("there is no such program; there are {known}")));
    }
    if !sh::is_root() {
        return Err(Failure::unable(
            "programs run on network namespaces, which take root: sudo -E cargo xtask programs",
        ));
    }
    if sources().is_none() && wanted.iter().any(|program| program.name == "fabtests") {
        let missing = "FABTESTS has to name the folder `fabtests` of libfabric's source tree, of the version of the libfabric that is \
                       installed (fi_info --version): get that release's sources, then sudo -E FABTESTS=FOLDER cargo xtask programs fabtests";
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
        (self.before)()?;
        let python = folder().join(self.name).join("python");
        if !self.python.is_empty() && !python.exists() {
            sh::run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
            let install = ["-m", "pip", "install", "--quiet"];
            sh::run(Command::new(python.join("bin/python3")).args(install).args(self.python))?;
        }
        let work = folder().join(self.name).join("work");
        // What the last run left.
        drop(std::fs::remove_dir_all(&work));
        std::fs::create_dir_all(&work).map_err(|error| Failure::of_file(&work, &error))?;
        let here = sh::root().join("xtask/src/programs");
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
        command.arg(here.join(self.script)).args((self.arguments)(&python.join("bin")));
        command.env("SPRAY", spray).env("PROVIDERS", demo::target().join("release"));
        command.env("ROOT", sh::root()).env("HERE", here).env("WORK", &work);
        let mut said = String::new();
        let is_well = sh::run_lines(&mut command, |line| said.extend([line, "\n"]))?;
        if !is_well {
            return Err(Failure::failed(format!(
                "{}: {} ended with an error; see {}",
                self.name,
                self.script,
                work.display()
            )));
        }
        let lines =
            |kind: &'static str| said.lines().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(": "));
        let (versions, commands) = (lines("version"), lines("command"));
        let versions = versions.map(|version| format!("Version: {version}\n\n"));
        let commands = commands.map(|command| format!("```\n{command}\n```\n\n"));
        let results = lines("result").map(|result| format!("- {result}\n"));
        sh::fill("docs/results/programs.md", self.name, &versions.chain(commands).chain(results).collect::<String>())
    }
}

fn nothing() -> Outcome {
    Ok(())
}

/// The package, and roots of systems that have nothing but their base.
fn roots() -> Outcome {
    crate::dist::dist()?;
    let roots = folder().join("packages/roots");
    std::fs::create_dir_all(&roots).map_err(|error| Failure::of_file(&roots, &error))?;
    // Ubuntu's signing keys are not in Debian. Its releases are set up as its first ones were, which know where it is.
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

/// Where fabtests' sources are.
fn sources() -> Option<PathBuf> {
    std::env::var_os("FABTESTS").map(PathBuf::from).filter(|folder| folder.join("autogen.sh").exists())
}

fn folder() -> PathBuf {
    sh::root().join("target/programs")
}
