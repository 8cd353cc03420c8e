//! The daemons' configurations, each in its own language: the same session, and the same routes, one of each
//! family with every attribute that a route can carry.

use super::Kind;
use crate::net::LNS;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// Our autonomous system: a number that does not fit two octets.
pub(crate) const OUR_ASN: u32 = 4_200_000_000;

/// Their autonomous system.
pub(crate) const THEIR_ASN: u32 = 65_001;

/// Routes that GoBGP accepts only through its command line.
pub(super) const GOBGP_ROUTES: &[&str] = &[
    "global rib add 192.0.2.128/25 nexthop 10.9.0.1",
    "global rib add 198.51.100.0/24 nexthop 10.9.0.1 origin igp aspath 4200000001 med 77 community 65001:1,65001:2 rt 65001:3 \
     large-community 65001:4:5",
    "global rib add -a ipv6 2001:db8:1::/48 nexthop fd09::1 origin igp aspath 4200000001 med 77 community 65001:1,65001:2 rt 65001:3 \
     large-community 65001:4:5",
];

/// The same routes without further attributes.
pub(super) const GOBGP_PLAIN: &[&str] = &[
    "global rib add 192.0.2.128/25 origin igp",
    "global rib add 198.51.100.0/24 origin igp",
    "global rib add -a ipv6 2001:db8:1::/48 nexthop fd09::1 origin igp",
];

/// One session with us, at [`LNS`].
pub(crate) struct Setup<'s> {
    /// Its own address.
    pub(crate) address: &'s str,
    /// Its autonomous system.
    pub(crate) asn: u32,
    /// It waits for us to connect.
    pub(crate) is_passive: bool,
    /// Additional lines of the session.
    pub(crate) session: &'s str,
    /// Additional lines of each family in it.
    pub(crate) family: &'s str,
    /// Additional lines of the speaker.
    pub(crate) global: &'s str,
    /// Additional lines of the whole file.
    pub(crate) file: &'s str,
    /// It logs only errors.
    pub(crate) is_quiet: bool,
    /// Its routes have only the attributes that every route has.
    pub(crate) is_plain: bool,
    /// BIRD's statement for export, if the routes are plain.
    pub(crate) export: &'s str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            address: crate::net::LAC,
            asn: THEIR_ASN,
            is_passive: true,
            session: "",
            family: "",
            global: "",
            file: "",
            is_quiet: false,
            is_plain: false,
            export: "export all;",
        }
    }
}

impl Setup<'_> {
    /// Writes the configuration file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, kind: Kind, file: &Path) -> Result<()> {
        std::fs::write(file, self.text(kind)).with_context(|| file.display().to_string())
    }

    fn text(&self, kind: Kind) -> String {
        match kind {
            Kind::Frr => self.frr(),
            Kind::Bird => self.bird(),
            Kind::Gobgp => self.gobgp(),
        }
    }

    fn frr(&self) -> String {
        let Setup {
            address,
            asn,
            session,
            family,
            global,
            file,
            ..
        } = self;
        let passive = if self.is_passive {
            format!(" neighbor {LNS} passive\n")
        } else {
            String::new()
        };
        let lines = |text: &str| -> String {
            text.lines()
                .map(|line| format!(" neighbor {LNS} {line}\n"))
                .collect()
        };
        let (session, family) = (lines(session), lines(family));
        let own = if self.is_plain { "" } else { " route-map own" };
        let six = if self.is_plain {
            String::new()
        } else {
            format!("  neighbor {LNS} route-map six out\n")
        };
        let debug = if self.is_quiet {
            ""
        } else {
            "debug bgp neighbor-events\n"
        };
        format!(
            "{debug}{file}router bgp {asn}\n bgp router-id {address}\n no bgp ebgp-requires-policy\n \
             no bgp network import-check\n no bgp default ipv4-unicast\n bgp log-neighbor-changes\n{global} \
             neighbor {LNS} remote-as {OUR_ASN}\n{passive} neighbor {LNS} timers 1 3\n neighbor {LNS} timers connect 1\n \
             neighbor {LNS} advertisement-interval 0\n neighbor {LNS} update-source {address}\n \
             neighbor {LNS} disable-connected-check\n{session} \
             address-family ipv4 unicast\n  network 198.51.100.0/24{own}\n  network 192.0.2.128/25\n  neighbor {LNS} activate\n{family} exit-address-family\n \
             address-family ipv6 unicast\n  network 2001:db8:1::/48{own}\n  neighbor {LNS} activate\n\
             {six}{family} exit-address-family\n\
             route-map own permit 10\n set community 65001:1 65001:2\n set extcommunity rt 65001:3\n \
             set large-community 65001:4:5\n set metric 77\n set as-path prepend 4200000001\n\
             route-map six permit 10\n set ipv6 next-hop global fd09::1\n"
        )
    }

    fn bird(&self) -> String {
        let Setup {
            address,
            asn,
            session,
            family,
            global,
            file,
            ..
        } = self;
        let own = if self.is_plain {
            "blackhole;"
        } else {
            "blackhole { bgp_path.prepend(4200000001); bgp_community.add((65001,1)); \
                   bgp_community.add((65001,2)); bgp_ext_community.add((rt,65001,3)); \
                   bgp_large_community.add((65001,4,5)); };"
        };
        let passive = if self.is_passive { "passive; " } else { "" };
        // To external peers it sends only a metric that is set here.
        let export = if self.is_plain {
            self.export
        } else {
            "export filter { if source = RTS_STATIC then bgp_med = 77; accept; };"
        };
        let mut text = format!(
            "log stderr all;\nrouter id {address};\nprotocol device {{ }}\n{global}\n{file}\n\
             protocol static own4 {{ ipv4; route 198.51.100.0/24 {own} route 192.0.2.128/25 blackhole; }}\n\
             protocol static own6 {{ ipv6; route 2001:db8:1::/48 {own} }}\n"
        );
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "protocol bgp headend {{\n debug {{ states, events }};\n local {address} as {asn};\n neighbor {LNS} as {OUR_ASN};\n \
             strict bind; {passive}hold time 3; keepalive time 1; connect retry time 1; connect delay time 1; \
             error wait time 1,1;\n {session}\n \
             ipv4 {{ import all; {export} next hop self; {family} }};\n \
             ipv6 {{ import all; {export} next hop address fd09::1; {family} }};\n}}\n"
        );
        text
    }

    fn gobgp(&self) -> String {
        let Setup {
            address,
            asn,
            session,
            family,
            global,
            file,
            is_passive,
            ..
        } = self;
        let families: String = ["ipv4-unicast", "ipv6-unicast"]
            .iter()
            .map(|name| {
                format!(
                    "[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = \"{name}\"\n{family}\n"
                )
            })
            .collect();
        format!(
            "[global.config]\nas = {asn}\nrouter-id = \"{address}\"\nport = 179\nlocal-address-list = [\"{address}\"]\n{global}\n{file}\n\
             [[neighbors]]\n[neighbors.config]\nneighbor-address = \"{LNS}\"\npeer-as = {OUR_ASN}\n\
             [neighbors.timers.config]\nhold-time = 3\nkeepalive-interval = 1\nconnect-retry = 1\nidle-hold-time-after-reset = 1\n\
             [neighbors.transport.config]\npassive-mode = {is_passive}\nlocal-address = \"{address}\"\n{session}\n{families}"
        )
    }
}
