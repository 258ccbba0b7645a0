//! Kernels of all Debian releases, downloaded through apt from the mirror of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{self, Failure, Outcome};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Small kernels with everything the programs need; of NICs only virtio and VMware.
pub const CLOUD: &str = "cloud-amd64";
/// Kernels with every driver.
pub const FULL: &str = "amd64";

#[derive(Debug)]
pub struct Kernel {
    /// As in `uname -r`.
    pub release: String,
    pub image: PathBuf,
    /// Required modules in the order of loading.
    pub modules: Vec<PathBuf>,
    /// The unpacked packages.
    pub folder: PathBuf,
}

/// The newest kernel with this version prefix, and modules in the order of loading.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub version: &'a str,
    pub flavour: &'a str,
    pub modules: &'a [&'a str],
}

/// apt's package lists of some suites, in a private folder.
#[derive(Debug)]
pub struct Lists {
    folder: PathBuf,
}

/// Downloads the lists of these suites into the folder `name`, without changing the machine's.
pub fn update(name: &str, suites: &[&str]) -> Outcome<Lists> {
    let mirror = mirror()?;
    let lists = Lists { folder: sh::root().join("target/kernels").join(name) };
    let folder = &lists.folder;
    let failed = |error| Failure::of_file(folder, &error);
    for name in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(name)).map_err(failed)?;
    }
    let sources: String =
        suites.iter().map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n")).collect();
    fs::write(folder.join("sources.list"), sources).map_err(failed)?;
    let settings = format!(
        "Dir::State::lists \"{0}/lists\";\nDir::Cache \"{0}/cache\";\nDir::Etc::sourcelist \"{0}/sources.list\";\n\
         Dir::Etc::sourceparts \"-\";\nAcquire::Languages \"none\";\nAPT::Sandbox::User \"\";\n\
         Acquire::Retries \"1\";\nAcquire::http::Timeout \"20\";\nAcquire::https::Timeout \"20\";\n",
        folder.display()
    );
    fs::write(folder.join("apt.conf"), settings).map_err(failed)?;
    // A mirror may lack a suite, which is noticed when no kernel is found.
    let _ = sh::run(lists.apt("apt-get").args(["update", "-qq"]));
    Ok(lists)
}

/// Returns the Debian mirror in apt's sources.
fn mirror() -> Outcome<String> {
    let format = "$(ORIGIN) $(LABEL) $(REPO_URI)";
    let targets = sh::capture("apt-get", &["indextargets", "--format", format, "Created-By: Packages"]);
    let targets = targets.unwrap_or_default();
    let mirror = targets.lines().find_map(|line| line.strip_prefix("Debian Debian "));
    mirror.map(String::from).ok_or_else(|| Failure::unable("apt's sources on this machine do not name Debian"))
}

impl Lists {
    pub fn fetch(&self, wanted: Wanted<'_>, into: &Path) -> Outcome<Kernel> {
        let Wanted { version, flavour, modules } = wanted;
        let output = self.apt("apt-cache").args(["pkgnames", "linux-"]).output();
        let names = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let mut releases = releases(&names, version, flavour).into_iter();
        let Some((release, packages)) = releases.find(|(_, packages)| self.download(packages, into).is_ok()) else {
            return Err(Failure::unable(format!("apt has no kernel {version} (`{flavour}`)")));
        };
        let unpacked = super::fresh(&into.join("unpacked"))?;
        for package in packages {
            let file = find(into, &|name| name.starts_with(&format!("{package}_")) && name.ends_with(".deb"));
            let file = file.ok_or_else(|| Failure::failed(format!("{package} was not downloaded")))?;
            sh::run(Command::new("dpkg-deb").arg("-x").args([&file, &unpacked]))?;
        }
        let part = |what: &str| {
            let found = find(&unpacked, &|name| name.starts_with(what));
            found.ok_or_else(|| Failure::failed(format!("the packages of {release} hold no {what}")))
        };
        let modules = modules.iter().map(|module| part(&format!("{module}.ko"))).collect::<Outcome<_>>()?;
        let image = part("vmlinuz")?;
        Ok(Kernel { image, modules, release, folder: unpacked })
    }

    fn download(&self, packages: &[String], into: &Path) -> Outcome {
        fs::create_dir_all(into).map_err(|error| Failure::of_file(into, &error))?;
        let there = |package: &String| find(into, &|name| name.starts_with(&format!("{package}_"))).is_some();
        if packages.iter().all(there) {
            return Ok(());
        }
        sh::run(self.apt("apt-get").arg("download").args(packages).current_dir(into))
    }

    /// Downloads packages and missing dependencies of a suite; returns the folder with them.
    pub fn download_missing(&self, suite: &str, packages: &[&str]) -> Outcome<PathBuf> {
        let options =
            ["install", "-qq", "--yes", "--download-only", "--no-install-recommends", "--target-release", suite];
        sh::run(self.apt("apt-get").args(options).args(packages))?;
        Ok(self.folder.join("cache/archives"))
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }
}

/// Returns the releases of `version`, newest first, with their packages: one up to 7.1, then two.
fn releases(names: &str, version: &str, flavour: &str) -> Vec<(String, Vec<String>)> {
    let of = |what: &str| -> Vec<String> {
        let releases = names.lines().filter_map(|name| name.strip_prefix(what)).filter(|release| {
            let rest = release.strip_prefix(version);
            let numbers = release.strip_suffix(flavour).and_then(|rest| rest.strip_suffix('-'));
            rest.is_some_and(|rest| rest.starts_with(['.', '-', '+', '~']))
                && numbers.is_some_and(|numbers| numbers.ends_with(|last: char| last.is_ascii_digit()))
        });
        releases.map(String::from).collect()
    };
    let (binaries, modules) = (of("linux-binary-"), of("linux-modules-"));
    let split = binaries
        .iter()
        .filter(|release| modules.contains(release))
        .map(|release| (release.clone(), vec![format!("linux-binary-{release}"), format!("linux-modules-{release}")]));
    let whole =
        of("linux-image-").into_iter().filter(|release| !binaries.contains(release) && numbers(release).len() > 3);
    let whole = whole.map(|release| (release.clone(), vec![format!("linux-image-{release}")]));
    let mut all: Vec<_> = split.chain(whole).collect();
    all.sort_by_key(|(release, _)| std::cmp::Reverse(numbers(release)));
    all
}

/// Returns `[6, 12, 43, 12, 64]` for `6.12.43+deb12-cloud-amd64`.
pub fn numbers(release: &str) -> Vec<u32> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Returns the first file in `folder` with a matching name.
fn find(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            return find(&path, fits);
        }
        fits(&entry.file_name().to_string_lossy()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::{CLOUD, FULL, numbers, releases};

    #[test]
    fn the_newest_release_comes_first_with_its_packages() {
        let names = "linux-image-6.12.43+deb12-cloud-amd64\nlinux-image-6.12.117+deb12-cloud-amd64\n\
            linux-image-6.12.117+deb12-cloud-amd64-dbg\nlinux-image-6.12.117+deb12-amd64\nlinux-image-6.1.0-56-cloud-amd64\n\
            linux-image-6.12-cloud-amd64\nlinux-image-7.2.6+deb13-cloud-amd64\nlinux-binary-7.2.6+deb13-cloud-amd64\n\
            linux-binary-7.2.13+deb14-cloud-amd64\nlinux-modules-7.2.13+deb14-cloud-amd64";
        let all = |version, flavour| -> Vec<String> {
            releases(names, version, flavour).into_iter().map(|(name, _)| name).collect()
        };
        let found = |version| all(version, CLOUD);
        assert_eq!(found("6.12"), ["6.12.117+deb12-cloud-amd64", "6.12.43+deb12-cloud-amd64"]);
        assert_eq!(found("6.1"), ["6.1.0-56-cloud-amd64"]);
        assert_eq!(found("9"), [""; 0]);
        assert_eq!(all("6.12", FULL), ["6.12.117+deb12-amd64"]);
        // Without its modules a kernel cannot create veth pairs.
        let (release, packages) = releases(names, "7.2", CLOUD).remove(0);
        assert_eq!(release, "7.2.13+deb14-cloud-amd64");
        assert_eq!(packages, ["linux-binary-7.2.13+deb14-cloud-amd64", "linux-modules-7.2.13+deb14-cloud-amd64"]);
        assert_eq!(releases(names, "7.2", CLOUD).len(), 1);
    }

    #[test]
    fn numbers_of_a_release() {
        assert_eq!(numbers("6.12.43+deb12-cloud-amd64"), [6, 12, 43, 12, 64]);
    }
}
