//! One module for each decoder or core. A target panics if an invariant does not hold, and returns otherwise,
//! whatever the bytes are.

pub mod aaa_pools;
pub mod aaa_users;
pub mod bgp_live;
pub mod bgp_message;
pub mod capfile_compressed;
pub mod capfile_formats;
pub mod classify_packet;
pub mod classify_text;
pub mod edge_live;
pub mod filter_rules;
pub mod flow_keys;
mod forward_checks;
pub mod forward_join;
pub mod forward_packet;
pub mod forward_split;
pub mod import;
pub mod ip_header;
pub mod l2tp_digest;
pub mod l2tp_header;
pub mod l2tp_message;
pub mod l2tp_unhide;
pub mod lns_live;
pub mod mrt;
pub mod packet_decode;
pub mod packet_tcp;
pub mod ping_echo;
pub mod ping_file;
pub mod ping_probe;
pub mod ppp_frame;
pub mod ppp_link;
pub mod radius_client;
pub mod radius_dynauth;
pub mod trace_analyzer;
pub mod trace_capture;
mod trace_checks;
pub mod trace_thaw;
