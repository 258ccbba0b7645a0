//! A libfabric provider on AF_XDP: reliable datagram endpoints (`FI_EP_RDM`) over many paths.
//!
//! See `docs/libfabric.md`. libfabric loads the library, calls [`fi_prov_ini`], and reaches
//! everything else through the operation tables of objects.
//!
//! | file | content |
//! |---|---|
//! | `abi` | libfabric's structures |
//! | `call`, `object`, `address`, `error`, `log`, `loaded` | helpers for calls from and to C |
//! | `settings`, `interfaces`, `getinfo` | capabilities, and the hints of applications |
//! | `fabric`, `domain`, `endpoint`, `messages`, `rma`, `av`, `cq`, `counter`, `mr` | objects |
//! | `shared` | state of a domain: its interface, and the endpoint on it |
//! | `open`, `progress` | opening an interface, and the progress thread |
//! | `engine` | data path of an endpoint, without objects of C |
//! | `peers`, `queue`, `direction` | shared by engine and objects |
#![deny(unsafe_code)]

mod abi;
mod address;
mod av;
mod call;
mod counter;
mod cq;
mod direction;
mod domain;
mod endpoint;
mod engine;
mod error;
mod fabric;
mod getinfo;
mod interfaces;
mod loaded;
mod log;
mod messages;
mod mr;
mod object;
mod open;
mod peers;
mod progress;
mod queue;
mod rma;
mod settings;
mod shared;

use std::cell::UnsafeCell;

use self::abi::{fi_provider, fi_version};

struct Provider(UnsafeCell<fi_provider>);

// SAFETY: this crate only takes the address. libfabric writes its part once, under a lock.
#[expect(unsafe_code, reason = "libfabric writes into a static")]
unsafe impl Sync for Provider {}

static PROVIDER: Provider = Provider(UnsafeCell::new(fi_provider {
    version: fi_version(0, 1),
    fi_version: loaded::OLDEST,
    context: [0; 4],
    name: c"spray".as_ptr(),
    getinfo: getinfo::getinfo,
    fabric: fabric::open,
    cleanup,
}));

extern "C" fn cleanup() {}

/// Returns the provider. libfabric calls this after loading the library.
#[expect(unsafe_code, reason = "libfabric looks for this name, and reads what is returned")]
// SAFETY: libfabric reserves this name for the entry point of providers.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut fi_provider {
    let provider = PROVIDER.0.get();
    // SAFETY: no other thread has the address yet.
    unsafe { (*provider).fi_version = loaded::version() };
    log::begin(provider, &settings::VARIABLES);
    provider
}
