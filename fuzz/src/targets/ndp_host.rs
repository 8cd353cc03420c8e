//! Router Advertisements to a host: what it forms and keeps has its limits and the lifetimes of RFC 4861 and RFC 4862.

use base::{Duration, Instant};
use edge::v6::RouterClient;
use wire::ip::Header;
use wire::ndp::{self, Message};

const IDENTIFIER: u64 = 0x0211_22ff_fe33_4455;
const LINK_MTU: u16 = 1_492;

/// Takes steps: an octet of length and that many octets, the part of an advertisement behind its checksum. A step of
/// length 0 advances to the host's next deadline, and others by their length in seconds.
///
/// # Panics
/// If the host has more addresses, servers or solicitations than its limits, an MTU beyond them, an address with another
/// identifier, or a deadline that was served and is still due.
pub fn target(data: &[u8]) {
    let mut now = Instant::ZERO;
    let mut host = RouterClient::new(IDENTIFIER, [7; 32], now);
    let mut solicitations = 0;
    let mut rest = data;
    while let [length, more @ ..] = rest {
        let (content, behind) = more.split_at(usize::from(*length).min(more.len()));
        rest = behind;
        match length {
            0 => now = host.poll_timeout().unwrap_or(now).max(now),
            length => {
                now += Duration::from_secs(u64::from(*length));
                advertise(&mut host, content, now);
            }
        }
        host.handle_timeout(now);
        assert!(!host.handle_timeout(now), "nothing is left to drop");
        assert!(
            host.poll_timeout().is_none_or(|at| at > now),
            "a deadline that was served is due"
        );
        solicitations += u8::from(host.poll_solicitation());
        assert!(!host.poll_solicitation() && solicitations <= 3);
        assert!(host.addresses().len() <= 4 && host.servers().count() <= 3);
        assert!(
            host.mtu()
                .is_none_or(|mtu| (1_280..=LINK_MTU).contains(&mtu))
        );
        for formed in host.addresses() {
            assert_eq!(formed.address.to_bits() as u64, IDENTIFIER);
            assert!(!formed.address.is_multicast() && !formed.address.is_unicast_link_local());
            assert!(formed.valid_until > now);
        }
    }
}

fn advertise(host: &mut RouterClient, content: &[u8], now: Instant) {
    let addresses = ["fe80::1", "ff02::1"].map(|one| one.parse().expect("an address"));
    let mut packet = Vec::new();
    ndp::write_icmp(addresses, 255, &mut packet, |out| {
        out.extend_from_slice(&[ndp::ROUTER_ADVERTISEMENT, 0, 0, 0]);
        out.extend_from_slice(content);
    });
    let header = Header::read(&packet).expect("a packet");
    if let Ok(Message::RouterAdvertisement(router, options)) = Message::read(&header, &packet) {
        host.advertised(router, options, LINK_MTU, now);
        assert_eq!(host.is_default(), router.lifetime_s > 0);
    }
}
