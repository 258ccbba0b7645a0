//! A libfabric provider on AF_XDP: reliable datagram endpoints (`FI_EP_RDM`) that send messages over all paths of a network.
//!
//! `docs/libfabric.md` of the project says how to use it. libfabric loads the library, calls [`fi_prov_ini`], and reaches everything else
//! by the tables of functions in its objects.
//!
//! | file | content |
//! |---|---|
//! | `abi` | libfabric's structures |
//! | `call`, `object`, `address`, `error`, `say`, `loaded` | what calls from C, and to it, have in common |
//! | `settings`, `interfaces`, `getinfo` | what there is, and what applications ask for |
//! | `fabric`, `domain`, `endpoint`, `messages`, `rma`, `av`, `cq`, `counter`, `mr` | objects that applications hold, and their calls |
//! | `shared` | what the objects of a domain share: an interface, and the endpoint that runs on it |
//! | `open`, `progress` | an interface is taken over, and looked after |
//! | `engine` | what an endpoint does; it has no C in it |
//! | `peers`, `queue`, `side` | what the engine and the objects share: peers by number, completions, where they go |
#![deny(unsafe_code)]

mod abi;
mod address;
mod av;
mod call;
mod counter;
mod cq;
mod domain;
mod endpoint;
mod engine;
mod error;
mod fabric;
mod getinfo;
mod interfaces;
mod loaded;
mod messages;
mod mr;
mod object;
mod open;
mod peers;
mod progress;
mod queue;
mod rma;
mod say;
mod settings;
mod shared;
mod side;

use std::cell::UnsafeCell;

use self::abi::{fi_provider, fi_version};

/// What libfabric writes into.
struct Provider(UnsafeCell<fi_provider>);

// SAFETY: this crate only takes its address. libfabric writes its own part once, under its own lock.
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

/// The provider. libfabric calls this once it has loaded the library.
#[expect(unsafe_code, reason = "libfabric looks for this name, and reads what is returned")]
// SAFETY: libfabric gives every provider's library a function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut fi_provider {
    let provider = PROVIDER.0.get();
    // SAFETY: nobody else knows of it yet.
    unsafe { (*provider).fi_version = loaded::version() };
    say::begin(provider, &settings::VARIABLES);
    provider
}
