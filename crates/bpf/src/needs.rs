//! What a program has to read for a classifier.

use qos::classifier::Classifier;
use qos::classify::{FlowMatch, Key, KeySet, Match};

/// Fields of one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FlowNeeds {
    pub(crate) source: bool,
    pub(crate) destination: bool,
    /// Protocol and ports.
    pub(crate) small: bool,
    /// Whether there is such a header.
    pub(crate) exists: bool,
}

/// Fields of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    pub(crate) outer: FlowNeeds,
    pub(crate) inner: FlowNeeds,
    /// Whether the innermost header is asked for: the tunnel's, or else the only one.
    pub(crate) innermost: bool,
    /// DSCP of the outer header.
    pub(crate) traffic_class: bool,
    pub(crate) vlan: bool,
    /// Whether addresses are kept as the words of a hash, little-endian, and not as numbers.
    pub(crate) words: bool,
}

impl FlowNeeds {
    pub(crate) fn any(self) -> bool {
        self.source || self.destination || self.small || self.exists
    }

    fn add(&mut self, other: FlowNeeds) {
        self.source |= other.source;
        self.destination |= other.destination;
        self.small |= other.small;
        self.exists |= other.exists;
    }

    fn of_match(asked: &FlowMatch) -> FlowNeeds {
        FlowNeeds {
            source: asked.src.is_some(),
            destination: asked.dst.is_some(),
            small: asked.proto.is_some() || asked.proto_src.is_some() || asked.proto_dst.is_some(),
            exists: !asked.is_empty(),
        }
    }
}

impl Needs {
    pub(crate) fn of(classifier: &Classifier) -> Needs {
        let mut needs = Needs::default();
        match classifier {
            Classifier::Rules(rules) => {
                for (rule, _) in rules {
                    needs.add_match(rule);
                }
            }
            Classifier::Map(map) => needs.add_keys(KeySet::of(&[map.key])),
            Classifier::Hash { keys, .. } => {
                needs.add_keys(keys.without_determined());
                needs.words = true;
            }
            Classifier::Bands(_) => needs.traffic_class = true,
        }
        needs
    }

    /// Whether an IP header has to be read.
    pub(crate) fn ip(&self) -> bool {
        self.traffic_class || self.outer.any() || self.follow()
    }

    /// Whether tunnels have to be followed.
    pub(crate) fn follow(&self) -> bool {
        self.inner.any()
    }

    fn add_innermost(&mut self, fields: FlowNeeds) {
        if fields.any() {
            self.innermost = true;
            self.outer.add(fields);
            self.inner.add(fields);
            self.inner.exists = true;
        }
    }

    fn add_match(&mut self, rule: &Match) {
        self.outer.add(FlowNeeds::of_match(&rule.outer));
        self.inner.add(FlowNeeds::of_match(&rule.tunnel));
        self.add_innermost(FlowNeeds::of_match(&rule.innermost));
        self.traffic_class |= rule.dscp.is_some();
        self.vlan |= rule.vlan.is_some();
    }

    fn add_keys(&mut self, keys: KeySet) {
        let fields = |source, destination, small: [Key; 3]| FlowNeeds {
            source: keys.has(source),
            destination: keys.has(destination),
            small: small.into_iter().any(|key| keys.has(key)),
            exists: false,
        };
        let small = [Key::Proto, Key::ProtoSrc, Key::ProtoDst];
        self.outer.add(fields(Key::Src, Key::Dst, small));
        let small = [Key::TunnelProto, Key::TunnelProtoSrc, Key::TunnelProtoDst];
        self.inner
            .add(fields(Key::TunnelSrc, Key::TunnelDst, small));
        let small = [
            Key::InnermostProto,
            Key::InnermostProtoSrc,
            Key::InnermostProtoDst,
        ];
        self.add_innermost(fields(Key::InnermostSrc, Key::InnermostDst, small));
        self.traffic_class |= keys.has(Key::Dscp);
        self.vlan |= keys.has(Key::Vlan);
    }
}
