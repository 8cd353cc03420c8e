//! LCP's options (RFC 1661, section 6; ACCM of RFC 1662, section 7.1).
//!
//! Left out: Quality-Protocol, multilink and callback. Requests for them are rejected.

use base::snapshot::Codec;
use wire::ppp::control::{ConfigOption, Options, emit_option};
use wire::ppp::{Compression, protocol};

use crate::config::{Authentication, Config, Random};
use crate::layer::{Judgement, Negotiation};
use crate::snapshot;

const MRU: u8 = 1;
const ACCM: u8 = 2;
const AUTHENTICATION: u8 = 3;
const MAGIC: u8 = 5;
const PFC: u8 = 7;
const ACFC: u8 = 8;

/// The MRU of a link that negotiates none (RFC 1661, section 6.1).
pub(crate) const MRU_DEFAULT: u16 = 1_500;
/// The smallest MRU that any of our links uses.
const MRU_MIN: u16 = 128;
/// Times that we may receive our own magic number before the link counts as looped.
const LOOPS_MAX: u8 = 5;

/// The state of LCP's negotiation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lcp {
    /// The largest packet that we accept (our MRU).
    pub(crate) mru: u16,
    /// Our magic number. 0 if the peer rejects it.
    pub(crate) magic: u32,
    /// The authentication protocol that we require of the peer.
    pub(crate) ask: Option<Authentication>,
    /// The compression options that we offer: PFC and ACFC.
    offer: [bool; 2],
    /// Whether we have credentials to authenticate with (client side).
    able: bool,
    /// The largest packet that the peer accepts (its MRU).
    pub(crate) peer_mru: u16,
    /// The peer's magic number. 0 if it has none.
    pub(crate) peer_magic: u32,
    /// The authentication protocol that the peer requires of us.
    pub(crate) peer_asks: Option<Authentication>,
    /// The compression that the peer offered for the headers of frames we send.
    pub(crate) compression: Compression,
    /// The peer requires authentication that we cannot provide, and has not accepted our refusal yet.
    pub(crate) unproven: bool,
    /// The largest packet in a frame of PPPoE; 0 if the link runs over another protocol.
    ether_max: u16,
    loops: u8,
}

impl Lcp {
    pub(crate) fn new(
        config: &Config,
        authenticate: bool,
        able: bool,
        random: &mut dyn Random,
    ) -> Self {
        Self {
            mru: config.mru,
            magic: random.number(),
            ask: config
                .authenticate
                .first()
                .copied()
                .filter(|_| authenticate),
            offer: [config.compress; 2],
            able,
            peer_mru: MRU_DEFAULT,
            peer_magic: 0,
            peer_asks: None,
            compression: Compression::default(),
            unproven: false,
            ether_max: 0,
            loops: 0,
        }
    }

    /// The link runs over PPPoE, which carries packets of up to `packet_max` bytes: neither side's MRU may be larger,
    /// and neither PFC nor ACFC is requested (RFC 2516, section 7).
    pub(crate) fn set_ether(&mut self, packet_max: u16) {
        self.ether_max = packet_max.max(MRU_MIN);
        self.mru = self.mru.min(self.ether_max);
        self.offer = [false; 2];
    }

    /// The header compression that the peer may use in frames it sends, once it has agreed.
    pub(crate) fn offered(&self) -> Compression {
        let [protocol, address] = self.offer;
        Compression { protocol, address }
    }

    /// Whether we received our own magic number too often.
    pub(crate) fn is_looped(&self) -> bool {
        self.loops >= LOOPS_MAX
    }

    /// Takes over the options that another device negotiated in our name. `false` if we would not have requested them.
    pub(crate) fn take_over(&mut self, sent: Options<'_>, config: &Config) -> bool {
        let mut asked = None;
        let mut magic = 0;
        let mut mru = MRU_DEFAULT;
        let mut offer = [false; 2];
        for option in sent {
            match (option.kind, option.data) {
                (MRU, &[high, low]) => mru = u16::from_be_bytes([high, low]),
                (ACCM, _) => {}
                (AUTHENTICATION, data) => match Authentication::from_option(data) {
                    Some(known) => asked = Some(known),
                    None => return false,
                },
                (MAGIC, &[a, b, c, d]) => magic = u32::from_be_bytes([a, b, c, d]),
                (PFC, []) => offer[0] = true,
                (ACFC, []) => offer[1] = true,
                _ => return false,
            }
        }
        let proven = match asked {
            None => self.ask.is_none(),
            Some(by) => config.authenticate.contains(&by),
        };
        if !proven || mru > config.mru.max(MRU_DEFAULT) || mru < MRU_MIN {
            return false;
        }
        (self.mru, self.magic, self.ask, self.offer) = (mru, magic, asked, offer);
        true
    }
}

impl Negotiation for Lcp {
    const PROTOCOL: u16 = protocol::LCP;
    const NAME: &'static str = "lcp";

    fn request(&self, out: &mut Vec<u8>) {
        if self.mru != MRU_DEFAULT {
            emit_option(out, MRU, &self.mru.to_be_bytes());
        }
        if let Some(by) = self.ask {
            emit_option(out, AUTHENTICATION, by.option());
        }
        if self.magic != 0 {
            emit_option(out, MAGIC, &self.magic.to_be_bytes());
        }
        for (kind, offer) in [PFC, ACFC].into_iter().zip(self.offer) {
            if offer {
                emit_option(out, kind, &[]);
            }
        }
    }

    fn judge(&mut self, option: &ConfigOption<'_>, random: &mut dyn Random) -> Judgement {
        match (option.kind, option.data) {
            (MRU, &[high, low]) => match (u16::from_be_bytes([high, low]), self.ether_max) {
                (mru, _) if mru < MRU_MIN => Judgement::suggest(&MRU_MIN.to_be_bytes()),
                (mru, max) if max != 0 && mru > max => Judgement::suggest(&max.to_be_bytes()),
                (_, _) => Judgement::Agree,
            },
            (MRU, _) => Judgement::suggest(&MRU_DEFAULT.to_be_bytes()),
            // PPPoE forbids these (RFC 2516, section 7).
            (ACCM | ACFC, _) if self.ether_max != 0 => Judgement::Reject,
            (ACCM, [_, _, _, _]) => Judgement::Agree,
            (ACCM, _) => Judgement::suggest(&[0; 4]),
            (AUTHENTICATION, data) => match Authentication::from_option(data) {
                None | Some(Authentication::Eap) if self.able => {
                    self.unproven = true;
                    Judgement::suggest(Authentication::ChapMd5.option())
                }
                Some(_) if self.able => Judgement::Agree,
                _ => {
                    self.unproven = true;
                    Judgement::Reject
                }
            },
            (MAGIC, &[a, b, c, d]) => match u32::from_be_bytes([a, b, c, d]) {
                0 => Judgement::suggest(&random.number().to_be_bytes()),
                magic if magic == self.magic => {
                    self.loops = self.loops.saturating_add(1);
                    Judgement::suggest(&random.number().to_be_bytes())
                }
                _ => Judgement::Agree,
            },
            (MAGIC, _) => Judgement::suggest(&random.number().to_be_bytes()),
            (PFC | ACFC, []) => Judgement::Agree,
            _ => Judgement::Reject,
        }
    }

    fn agree(&mut self, request: Options<'_>) {
        self.peer_mru = MRU_DEFAULT;
        self.peer_magic = 0;
        self.peer_asks = None;
        self.compression = Compression::default();
        self.unproven = false;
        self.loops = 0;
        for option in request {
            match (option.kind, option.data) {
                (MRU, &[high, low]) => self.peer_mru = u16::from_be_bytes([high, low]),
                (MAGIC, &[a, b, c, d]) => self.peer_magic = u32::from_be_bytes([a, b, c, d]),
                (AUTHENTICATION, data) => self.peer_asks = Authentication::from_option(data),
                (PFC, _) => self.compression.protocol = true,
                (ACFC, _) => self.compression.address = true,
                _ => {}
            }
        }
    }

    fn adjust(&mut self, option: &ConfigOption<'_>, config: &Config, random: &mut dyn Random) {
        match (option.kind, option.data) {
            (MRU, &[high, low]) => {
                let wanted = u16::from_be_bytes([high, low]);
                let own = match self.ether_max {
                    0 => config.mru,
                    max => config.mru.min(max),
                };
                self.mru = wanted.clamp(MRU_MIN, own.max(MRU_MIN));
            }
            (AUTHENTICATION, data) if self.ask.is_some() => {
                let wanted = Authentication::from_option(data);
                if let Some(by) = wanted.filter(|by| config.authenticate.contains(by)) {
                    self.ask = Some(by);
                } else {
                    self.ask = self.ask.map(|by| next_way(by, config));
                }
            }
            (MAGIC, _) if self.magic != 0 => self.magic = random.number(),
            (PFC, _) => self.offer[0] = false,
            (ACFC, _) => self.offer[1] = false,
            _ => {}
        }
    }

    fn withdraw(&mut self, kind: u8) -> bool {
        match kind {
            MRU => self.mru = MRU_DEFAULT,
            AUTHENTICATION => return self.ask.is_none(),
            MAGIC => self.magic = 0,
            PFC => self.offer[0] = false,
            ACFC => self.offer[1] = false,
            _ => {}
        }
        true
    }

    fn fields<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            mru,
            magic,
            ask,
            offer,
            able,
            peer_mru,
            peer_magic,
            peer_asks,
            compression,
            unproven,
            ether_max,
            loops,
        } = self;
        codec.number(21, "ether_max", ether_max);
        let usual = match *ether_max {
            0 => MRU_DEFAULT,
            max => max,
        };
        snapshot::number_or(codec, 22, "mru", mru, usual);
        snapshot::number_or(codec, 23, "peer_mru", peer_mru, *mru);
        snapshot::large(codec, 24, "magic", magic);
        snapshot::large(codec, 25, "peer_magic", peer_magic);
        codec.choice(26, "ask", ask, snapshot::REQUIRED);
        codec.choice(27, "peer_asks", peer_asks, snapshot::REQUIRED);
        let [protocol, address] = *offer;
        let mut offered = Compression { protocol, address };
        codec.choice(28, "offer", &mut offered, snapshot::COMPRESSIONS);
        *offer = [offered.protocol, offered.address];
        codec.choice(29, "compression", compression, snapshot::COMPRESSIONS);
        codec.number(30, "able", able);
        codec.number(31, "unproven", unproven);
        codec.number(32, "loops", loops);
    }
}

/// The authentication protocol to request after the peer refused `by`.
fn next_way(by: Authentication, config: &Config) -> Authentication {
    let after = config.authenticate.iter().skip_while(|&&way| way != by);
    let mut around = after.chain(&config.authenticate).skip(1);
    around.next().copied().unwrap_or(by)
}
