//! Creates, enters and removes network namespaces.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::RunError;
use crate::registry::{self, FOLDER};

/// Folders by namespace, which `ip netns exec` and `spray shell` mount over files of /etc.
const FILES: &str = "/etc/netns";

/// An address at which queries are refused at once.
const NO_NAME_SERVER: &str = "# names of hosts are in /etc/hosts; there is no name server\n\
                              nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";

/// A named network namespace, removed on drop; or an external one, of another program, which stays.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Locked while this process uses the namespace.
    file: Flock<File>,
    is_external: bool,
}

impl Namespace {
    /// Creates the namespace `name`.
    pub fn create(name: String) -> Result<Self, RunError> {
        let path = Path::new(FOLDER).join(&name);
        let fail = |doing| {
            let name = name.clone();
            move |source: io::Error| match source.kind() {
                io::ErrorKind::PermissionDenied => RunError::NotRoot,
                _ => RunError::Namespace { name, doing, source },
            }
        };
        make_folder(Path::new(FOLDER)).map_err(fail("making /run/netns"))?;
        let _creation = registry::creation_lock().map_err(fail("locking /run/netns"))?;
        share_folder().map_err(fail("sharing /run/netns"))?;
        File::create_new(&path).map_err(fail("making its file"))?;
        let bound = bind_new(&path);
        let owned = bound.and_then(|()| registry::lock_namespace(File::open(&path)?));
        match owned {
            Ok(file) => Ok(Self { name, file, is_external: false }),
            Err(source) => {
                remove(&path);
                Err(fail("creating it (limited by /proc/sys/user/max_net_namespaces)")(source))
            }
        }
    }

    /// Opens the namespace of another program at `path`.
    pub fn open_external(path: &Path) -> Result<Self, RunError> {
        let name = path.display().to_string();
        let owned = File::open(path).and_then(|file| {
            let own = File::open("/proc/self/ns/net")?.metadata()?;
            let external = file.metadata()?;
            if (own.dev(), own.ino()) == (external.dev(), external.ino()) {
                return Err(io::Error::other("it is this machine's own network"));
            }
            registry::lock_namespace(file)
        });
        let why = |source: io::Error| match source.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("it is in use by another host"),
            _ => source,
        };
        let owned =
            owned.map_err(|source| RunError::Namespace { name: name.clone(), doing: "using it", source: why(source) });
        Ok(Self { name, file: owned?, is_external: true })
    }

    /// Returns whether it belongs to another program.
    pub fn is_external(&self) -> bool {
        self.is_external
    }

    /// Returns its name, as for `ip netns`; the path of an external one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes `hosts` as /etc/hosts of programs that enter it by name, and a /etc/resolv.conf
    /// without a name server, as the machine's is unreachable. Removed with the namespace.
    pub fn put_names(&self, hosts: &str) -> Result<(), RunError> {
        let folder = Path::new(FILES).join(&self.name);
        let fail = |source| RunError::Namespace { name: self.name.clone(), doing: "writing its /etc/hosts", source };
        let put = |name: &str, content: &str| {
            let file = folder.join(name);
            fs::write(&file, content).and_then(|()| fs::set_permissions(file, Permissions::from_mode(0o644)))
        };
        let made = make_folder(Path::new(FILES)).and_then(|()| make_folder(&folder));
        made.and_then(|()| put("hosts", hosts)).and_then(|()| put("resolv.conf", NO_NAME_SERVER)).map_err(fail)
    }

    /// Returns its file, for netlink.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Runs `work` on this thread inside the namespace, and leaves it even on panic.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, RunError> {
        let fail = |source| RunError::Namespace { name: self.name.clone(), doing: "entering it", source };
        run_in(&self.file, work).map_err(fail)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.is_external {
            remove(&Path::new(FOLDER).join(&self.name));
        }
    }
}

/// Creates a folder that all users can read, regardless of the umask. An existing one is unchanged.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755))),
    }
}

/// Runs `work` on this thread inside a namespace, and leaves it even on panic.
pub(crate) fn run_in<T>(namespace: &File, work: impl FnOnce() -> T) -> io::Result<T> {
    let home = Home::open()?;
    setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
    let result = work();
    drop(home);
    Ok(result)
}

const OWN: &str = "/proc/thread-self/ns/net";

/// The original namespace of a thread; dropping it re-enters that.
struct Home(File);

impl Home {
    /// # Errors
    /// When this thread may not return: root of a user namespace, outside of its namespaces.
    fn open() -> io::Result<Self> {
        let own = File::open(OWN)?;
        setns(own.as_fd(), CloneFlags::CLONE_NEWNET)?;
        Ok(Self(own))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Otherwise the thread's next work would run in the wrong namespace.
        setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET).expect("a thread may return to its original namespace");
    }
}

/// Makes the folder a shared mount. Otherwise a later `ip netns add` mounts the folder on itself,
/// which hides the namespaces in it, so that they cannot be removed.
fn share_folder() -> io::Result<()> {
    let share = || mount(None::<&str>, FOLDER, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // Not a mount yet.
        Err(Errno::EINVAL) => {
            mount(Some(FOLDER), FOLDER, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// Creates a namespace and bind-mounts it at `path`.
pub(crate) fn bind_new(path: &Path) -> io::Result<()> {
    let _home = Home::open()?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    Ok(mount(Some(OWN), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?)
}

/// Removes the named namespace at `path`, if it exists.
pub(crate) fn remove(path: &Path) {
    // Not mounted if its creation failed halfway; the file is removed in any case.
    let _ = umount2(path, MntFlags::MNT_DETACH);
    let _ = fs::remove_file(path);
    if let Some(name) = path.file_name() {
        let _ = fs::remove_dir_all(Path::new(FILES).join(name));
    }
}

/// Writes a sysctl of this thread's network namespace, if the kernel has it.
pub fn sysctl(path: &str, value: &str) {
    // Kernels without IPv6 lack its settings and do not need them.
    let _ = fs::write(Path::new("/proc/sys/net").join(path), value);
}
