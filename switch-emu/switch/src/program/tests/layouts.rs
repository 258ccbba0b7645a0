//! Structs passed by pointer in the objects have no padding: Linux 5.15 rejects uninitialised bytes
//! of the stack.

use super::super::object::{Compiled, STEER, SWITCH};
use libbpf_rs::btf::types::{Array, Composite, Enum, Int, Ptr};
use libbpf_rs::btf::{Btf, BtfType, HasSize};

/// Checks every struct in the objects' type information: parameters of global functions, keys and
/// values of maps.
#[test]
fn no_struct_of_the_objects_has_padding() {
    for Compiled { name, bytes } in [SWITCH, STEER] {
        let btf = Btf::from_raw(name, bytes).expect("an object").expect("type information in it");
        let structs: Vec<Composite<'_>> = btf.type_by_kind::<Composite<'_>>().filter(|ty| ty.is_struct).collect();
        let of = |name: &str| structs.iter().any(|ty| ty.name().is_some_and(|found| found == name));
        assert!(
            name != "switch" || (of("Drain") && of("Frame")),
            "the type information lacks the parameters of functions"
        );
        for ty in structs {
            let members: usize = ty.iter().map(|member| size(btf.type_by_id(member.ty).expect("its type"))).sum();
            assert_eq!(members, ty.size(), "{name}: {:?} has padding", ty.name());
        }
    }
}

fn size(ty: BtfType<'_>) -> usize {
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(int) = Int::try_from(ty) {
        int.size()
    } else if let Ok(composite) = Composite::try_from(ty) {
        composite.size()
    } else if let Ok(array) = Array::try_from(ty) {
        array.capacity() * size(array.contained_type())
    } else if let Ok(number) = Enum::try_from(ty) {
        number.size()
    } else {
        assert!(Ptr::try_from(ty).is_ok(), "what is {ty:?}?");
        8
    }
}
