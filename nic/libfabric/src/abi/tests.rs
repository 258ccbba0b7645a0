use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use spray_test_support::{Folder, skip, text};

use super::*;

const HEADERS: &str = "/usr/include/rdma";

/// Returns the offsets of fields, and C expressions for the same.
macro_rules! structures {
    ($($name:ident { $($field:ident)* })*) => {{
        let (mut here, mut expressions) = (String::new(), String::new());
        $(
            let c = concat!("struct ", stringify!($name));
            writeln!(here, "{c} {}", size_of::<$name>()).unwrap();
            writeln!(expressions, "printf(\"{c} %zu\\n\", sizeof({c}));").unwrap();
            $(
                // `type` is a Rust keyword.
                let field = stringify!($field).trim_start_matches("r#");
                let bytes = field_bytes(|it: &$name| &raw const it.$field);
                writeln!(here, "{c}.{field} {} {bytes}", std::mem::offset_of!($name, $field)).unwrap();
                let at = format!("offsetof({c}, {field}), sizeof((({c} *)0)->{field})");
                writeln!(expressions, "printf(\"{c}.{field} %zu %zu\\n\", {at});").unwrap();
            )*
        )*
        (here, expressions)
    }};
}

fn field_bytes<S, F>(_field: impl Fn(&S) -> *const F) -> usize {
    size_of::<F>()
}

/// Returns constants, and their C expressions.
macro_rules! constants {
    ($($name:ident)*) => {{
        let (mut here, mut expressions) = (String::new(), String::new());
        $(
            writeln!(here, concat!(stringify!($name), " {}"), $name as u64).unwrap();
            writeln!(expressions, "printf(\"{0} %llu\\n\", (unsigned long long)({0}));", stringify!($name)).unwrap();
        )*
        (here, expressions)
    }};
}

#[test]
fn structures_and_constants_are_those_of_the_headers() {
    if !Path::new(HEADERS).join("providers/fi_prov.h").exists() || Command::new("cc").arg("--version").output().is_err()
    {
        return skip("needs libfabric's headers (Debian: libfabric-dev) and a C compiler");
    }
    let (structures, structure_expressions) = structures();
    let (constants, constant_expressions) = constants();
    let includes: String = ["fabric", "fi_domain", "fi_endpoint", "fi_cm", "fi_eq", "fi_tagged", "fi_rma", "fi_atomic"]
        .map(|name| format!("#include <rdma/{name}.h>\n"))
        .concat();
    let includes = format!("#include <stddef.h>\n#include <stdio.h>\n{includes}#include <rdma/fi_collective.h>\n");
    let main = format!(
        "{includes}#include <rdma/providers/fi_prov.h>\nint main(void) {{\n{structure_expressions}{constant_expressions}}}\n"
    );
    let folder = Folder::new();
    let (source, program) = (folder.file("ask.c", main), folder.join("ask"));
    let compiled = Command::new("cc").args(["-o", &program, &source]).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    let answer = Command::new(&program).output().unwrap();
    let there = text(&answer.stdout);
    for (here, there) in format!("{structures}{constants}").lines().zip(there.lines()) {
        assert_eq!(here, there);
    }
    assert_eq!(there.lines().count(), structures.lines().count() + constants.lines().count());
}

fn structures() -> (String, String) {
    structures! {
        fi_provider { version fi_version context name getinfo fabric cleanup }
        fi_info { next caps mode addr_format src_addrlen dest_addrlen src_addr dest_addr handle tx_attr rx_attr ep_attr
            domain_attr fabric_attr nic }
        fi_tx_attr { caps mode op_flags msg_order comp_order inject_size size iov_limit rma_iov_limit tclass }
        fi_rx_attr { caps mode op_flags msg_order comp_order total_buffered_recv size iov_limit }
        fi_ep_attr { r#type protocol protocol_version max_msg_size msg_prefix_size max_order_raw_size max_order_war_size
            max_order_waw_size mem_tag_format tx_ctx_cnt rx_ctx_cnt auth_key_size auth_key }
        fi_domain_attr { domain name threading control_progress data_progress resource_mgmt av_type mr_mode mr_key_size
            cq_data_size cq_cnt ep_cnt tx_ctx_cnt rx_ctx_cnt max_ep_tx_ctx max_ep_rx_ctx max_ep_stx_ctx max_ep_srx_ctx
            cntr_cnt mr_iov_limit caps mode auth_key auth_key_size max_err_data mr_cnt tclass }
        fi_fabric_attr { fabric name prov_name prov_version api_version }
        fi_av_attr { r#type rx_ctx_bits count ep_per_node name map_addr flags }
        fi_cq_attr { size flags format wait_obj signaling_vector wait_cond wait_set }
        fi_cntr_attr { events wait_obj wait_set flags }
        fi_eq_attr { size flags wait_obj signaling_vector wait_set }
        fid { fclass context ops }
        fi_ops { size close bind control }
        fid_fabric { fid ops api_version }
        fi_ops_fabric { size domain passive_ep eq_open }
        fid_domain { fid ops mr }
        fi_ops_domain { size av_open cq_open endpoint scalable_ep cntr_open }
        fi_ops_mr { size reg regv regattr }
        fid_mr { fid mem_desc key }
        fid_av { fid ops }
        fi_ops_av { size insert insertsvc insertsym remove lookup straddr av_set }
        fid_eq { fid ops }
        fi_ops_eq { size read readerr write sread strerror }
        fid_cq { fid ops }
        fi_ops_cq { size read readfrom readerr sread sreadfrom signal strerror }
        fid_cntr { fid ops }
        fi_ops_cntr { size read readerr add set wait adderr seterr }
        fid_ep { fid ops cm msg rma tagged atomic collective }
        fi_ops_ep { size cancel getopt setopt }
        fi_ops_cm { size setname getname }
        fi_ops_msg { size recv recvv recvmsg send sendv sendmsg inject senddata injectdata }
        fi_ops_tagged { size recv recvv recvmsg send sendv sendmsg inject senddata injectdata }
        fi_msg { msg_iov desc iov_count addr context data }
        fi_ops_rma { size read readv readmsg write writev writemsg inject writedata injectdata }
        fi_rma_iov { addr len key }
        fi_msg_rma { msg_iov desc iov_count addr rma_iov rma_iov_count context data }
        fi_msg_tagged { msg_iov desc iov_count addr tag ignore context data }
        fi_cq_tagged_entry { op_context flags len buf data tag }
        fi_cq_err_entry { op_context flags len buf data tag olen err prov_errno err_data err_data_size }
    }
}

fn constants() -> (String, String) {
    constants! {
        FI_MSG FI_RMA FI_TAGGED FI_READ FI_WRITE FI_MR_BASIC FI_MR_SCALABLE FI_MR_VIRT_ADDR FI_MR_PROV_KEY FI_RECV FI_SEND FI_REMOTE_READ FI_REMOTE_WRITE FI_MULTI_RECV FI_REMOTE_CQ_DATA FI_MORE FI_PEEK FI_COMPLETION FI_INJECT
        FI_INJECT_COMPLETE FI_TRANSMIT_COMPLETE FI_DELIVERY_COMPLETE FI_LOCAL_COMM FI_REMOTE_COMM FI_SOURCE FI_DIRECTED_RECV FI_SELECTIVE_COMPLETION FI_CLAIM FI_DISCARD FI_SYNC_ERR
        FI_ADDR_NOTAVAIL FI_FORMAT_UNSPEC FI_SOCKADDR FI_SOCKADDR_IN FI_SOCKADDR_IN6 FI_AV_UNSPEC FI_AV_MAP FI_AV_TABLE
        FI_PROGRESS_AUTO FI_PROGRESS_MANUAL FI_THREAD_SAFE FI_RM_ENABLED FI_ORDER_WAR FI_ORDER_SAR FI_ORDER_SAS FI_ORDER_RMA_WAR FI_EP_UNSPEC FI_EP_RDM
        FI_CLASS_FABRIC FI_CLASS_DOMAIN FI_CLASS_EP FI_CLASS_AV FI_CLASS_MR FI_CLASS_EQ FI_CLASS_CQ FI_CLASS_CNTR FI_OPT_ENDPOINT FI_OPT_MIN_MULTI_RECV FI_ENABLE
        FI_WAIT_NONE FI_WAIT_UNSPEC FI_WAIT_YIELD FI_CQ_FORMAT_UNSPEC FI_CQ_FORMAT_CONTEXT FI_CQ_FORMAT_MSG FI_CQ_FORMAT_DATA
        FI_CQ_FORMAT_TAGGED FI_EOTHER FI_ETOOSMALL FI_EOPBADSTATE FI_EAVAIL FI_EBADFLAGS FI_ENOCQ FI_ETRUNC FI_ENOKEY
    }
}
