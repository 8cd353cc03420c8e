//! A street of subscribers at one edge, over networks that lose, repeat and reorder: PPPoE hosts on two VLANs, a LAC, LNSs
//! that take sessions over, a second PPPoE server, RADIUS servers, and a NAT with few ports. Hosts lose power, servers
//! die, VLANs vanish, and the configuration changes meanwhile. Afterwards nothing has leaked, and every session has one
//! end, one reason and one account.
//!
//! Start reading at `street`. `check` has the invariants. The runs contain these kinds of bad input at random; a test for
//! each alone is elsewhere:
//!
//! | bad input | test |
//! |---|---|
//! | a PADR that arrives twice, a PADS that is lost | `a_repeated_request_gets_the_same_session`, `a_session_without_a_ppp_frame_ends` in `pppoe` |
//! | a storm of PADTs | `a_storm_of_terminations_ends_nothing_of_others` in `pppoe` |
//! | a VLAN or an interface that vanishes | `a_vlan_that_is_gone_ends_its_sessions_alone`, `a_port_that_is_gone_ends_its_sessions_without_a_packet` in `pppoe` |
//! | a second PPPoE server | `the_first_offer_that_fits_is_taken` in `pppoe` |
//! | tunnel sets that lead to the edge itself | `a_set_that_points_at_us_is_refused` in `switching` |
//! | DHCPv6 options that are repeated or nested | `repeated_associations_share_nothing` in `v6::server` |
//! | a client that never confirms | `a_solicit_is_offered_a_prefix_that_only_the_request_reserves` in `v6::server` |
//! | a prefix pool that is used up | `a_pool_that_is_used_up_is_told_once_and_counted_each_time` in `subscribers` |
//! | a CoA-Request about a session that is ending | `subscribers_that_cannot_be_changed_are_refused_with_the_reason` in `subscribers` |
//! | a NAT without a free block | `rfc_6888_req_11_a_used_up_pool_drops_new_mappings_and_keeps_old_ones` in `nat` |
//! | a flood of connections of one subscriber | `rfc_6888_req_4_ports_of_a_subscriber_are_limited_by_mappings_and_by_blocks` in `nat` |
#![forbid(unsafe_code)]

mod books;
mod chances;
mod check;
mod desk;
mod eap;
mod node;
mod radius;
mod runs;
mod street;
mod v6;
