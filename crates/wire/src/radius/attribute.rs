//! Types of attributes (RFC 2865, section 5; RFC 2866; RFC 2869; RFC 3162; RFC 5176), and values of some.

/// User-Name.
pub const USER_NAME: u8 = 1;
/// User-Password, hidden.
pub const USER_PASSWORD: u8 = 2;
/// CHAP-Password: the identifier and the response.
pub const CHAP_PASSWORD: u8 = 3;
/// NAS-IP-Address.
pub const NAS_IP_ADDRESS: u8 = 4;
/// NAS-Port.
pub const NAS_PORT: u8 = 5;
/// Service-Type.
pub const SERVICE_TYPE: u8 = 6;
/// Framed-Protocol.
pub const FRAMED_PROTOCOL: u8 = 7;
/// Framed-IP-Address.
pub const FRAMED_IP_ADDRESS: u8 = 8;
/// Framed-IP-Netmask.
pub const FRAMED_IP_NETMASK: u8 = 9;
/// Filter-Id.
pub const FILTER_ID: u8 = 11;
/// Framed-MTU.
pub const FRAMED_MTU: u8 = 12;
/// Reply-Message.
pub const REPLY_MESSAGE: u8 = 18;
/// Framed-Route.
pub const FRAMED_ROUTE: u8 = 22;
/// State.
pub const STATE: u8 = 24;
/// Class.
pub const CLASS: u8 = 25;
/// Vendor-Specific.
pub const VENDOR_SPECIFIC: u8 = 26;
/// Session-Timeout, in seconds.
pub const SESSION_TIMEOUT: u8 = 27;
/// Idle-Timeout, in seconds.
pub const IDLE_TIMEOUT: u8 = 28;
/// Called-Station-Id.
pub const CALLED_STATION_ID: u8 = 30;
/// Calling-Station-Id.
pub const CALLING_STATION_ID: u8 = 31;
/// NAS-Identifier.
pub const NAS_IDENTIFIER: u8 = 32;
/// Proxy-State.
pub const PROXY_STATE: u8 = 33;
/// Acct-Status-Type.
pub const ACCT_STATUS_TYPE: u8 = 40;
/// Acct-Delay-Time, in seconds.
pub const ACCT_DELAY_TIME: u8 = 41;
/// Acct-Input-Octets: from the subscriber.
pub const ACCT_INPUT_OCTETS: u8 = 42;
/// Acct-Output-Octets: to the subscriber.
pub const ACCT_OUTPUT_OCTETS: u8 = 43;
/// Acct-Session-Id.
pub const ACCT_SESSION_ID: u8 = 44;
/// Acct-Authentic.
pub const ACCT_AUTHENTIC: u8 = 45;
/// Acct-Session-Time, in seconds.
pub const ACCT_SESSION_TIME: u8 = 46;
/// Acct-Input-Packets.
pub const ACCT_INPUT_PACKETS: u8 = 47;
/// Acct-Output-Packets.
pub const ACCT_OUTPUT_PACKETS: u8 = 48;
/// Acct-Terminate-Cause.
pub const ACCT_TERMINATE_CAUSE: u8 = 49;
/// Acct-Input-Gigawords (RFC 2869, section 5.1).
pub const ACCT_INPUT_GIGAWORDS: u8 = 52;
/// Acct-Output-Gigawords (RFC 2869, section 5.2).
pub const ACCT_OUTPUT_GIGAWORDS: u8 = 53;
/// Event-Timestamp (RFC 2869, section 5.3), in seconds since 1970.
pub const EVENT_TIMESTAMP: u8 = 55;
/// CHAP-Challenge.
pub const CHAP_CHALLENGE: u8 = 60;
/// NAS-Port-Type.
pub const NAS_PORT_TYPE: u8 = 61;
/// Tunnel-Type (RFC 2868, section 3.1).
pub const TUNNEL_TYPE: u8 = 64;
/// Tunnel-Medium-Type (RFC 2868, section 3.2).
pub const TUNNEL_MEDIUM_TYPE: u8 = 65;
/// Tunnel-Client-Endpoint (RFC 2868, section 3.3).
pub const TUNNEL_CLIENT_ENDPOINT: u8 = 66;
/// Tunnel-Server-Endpoint (RFC 2868, section 3.4).
pub const TUNNEL_SERVER_ENDPOINT: u8 = 67;
/// Acct-Tunnel-Connection (RFC 2867, section 4.1).
pub const ACCT_TUNNEL_CONNECTION: u8 = 68;
/// Tunnel-Password (RFC 2868, section 3.5), salted.
pub const TUNNEL_PASSWORD: u8 = 69;
/// EAP-Message (RFC 3579, section 3.1).
pub const EAP_MESSAGE: u8 = 79;
/// Message-Authenticator (RFC 3579, section 3.2).
pub const MESSAGE_AUTHENTICATOR: u8 = 80;
/// Tunnel-Private-Group-ID (RFC 2868, section 3.6).
pub const TUNNEL_PRIVATE_GROUP_ID: u8 = 81;
/// Tunnel-Assignment-ID (RFC 2868, section 3.7).
pub const TUNNEL_ASSIGNMENT_ID: u8 = 82;
/// Tunnel-Preference (RFC 2868, section 3.8).
pub const TUNNEL_PREFERENCE: u8 = 83;
/// Acct-Interim-Interval (RFC 2869, section 5.16), in seconds.
pub const ACCT_INTERIM_INTERVAL: u8 = 85;
/// NAS-Port-Id (RFC 2869, section 5.17).
pub const NAS_PORT_ID: u8 = 87;
/// Framed-Pool (RFC 2869, section 5.18).
pub const FRAMED_POOL: u8 = 88;
/// Tunnel-Client-Auth-ID (RFC 2868, section 3.9).
pub const TUNNEL_CLIENT_AUTH_ID: u8 = 90;
/// Tunnel-Server-Auth-ID (RFC 2868, section 3.10).
pub const TUNNEL_SERVER_AUTH_ID: u8 = 91;
/// NAS-IPv6-Address (RFC 3162, section 2.1).
pub const NAS_IPV6_ADDRESS: u8 = 95;
/// Framed-Interface-Id (RFC 3162, section 2.2).
pub const FRAMED_INTERFACE_ID: u8 = 96;
/// Framed-IPv6-Prefix (RFC 3162, section 2.3).
pub const FRAMED_IPV6_PREFIX: u8 = 97;
/// Framed-IPv6-Route (RFC 3162, section 2.5).
pub const FRAMED_IPV6_ROUTE: u8 = 99;
/// Framed-IPv6-Pool (RFC 3162, section 2.6).
pub const FRAMED_IPV6_POOL: u8 = 100;
/// Error-Cause (RFC 5176, section 3.5).
pub const ERROR_CAUSE: u8 = 101;

/// Delegated-IPv6-Prefix (RFC 4818, section 3).
pub const DELEGATED_IPV6_PREFIX: u8 = 123;
/// Framed-IPv6-Address (RFC 6911, section 3.1).
pub const FRAMED_IPV6_ADDRESS: u8 = 168;
/// DNS-Server-IPv6-Address (RFC 6911, section 3.2).
pub const DNS_SERVER_IPV6_ADDRESS: u8 = 169;
/// Delegated-IPv6-Prefix-Pool (RFC 6911, section 3.4).
pub const DELEGATED_IPV6_PREFIX_POOL: u8 = 171;
/// Stateful-IPv6-Address-Pool (RFC 6911, section 3.5).
pub const STATEFUL_IPV6_ADDRESS_POOL: u8 = 172;

/// Values of Service-Type (RFC 2865, section 5.6).
pub mod service {
    /// Framed.
    pub const FRAMED: u32 = 2;
    /// Authorize Only (RFC 5176, section 3.2).
    pub const AUTHORIZE_ONLY: u32 = 17;
}

/// Values of Framed-Protocol (RFC 2865, section 5.7).
pub mod framed_protocol {
    /// PPP.
    pub const PPP: u32 = 1;
}

/// Values of NAS-Port-Type (RFC 2865, section 5.41).
pub mod port_type {
    /// Virtual.
    pub const VIRTUAL: u32 = 5;
}

/// Values of Acct-Authentic (RFC 2866, section 5.6).
pub mod authentic {
    /// RADIUS.
    pub const RADIUS: u32 = 1;
    /// Local.
    pub const LOCAL: u32 = 2;
}

/// Values of Tunnel-Type (RFC 2868, section 3.1).
pub mod tunnel_type {
    /// Layer Two Tunneling Protocol.
    pub const L2TP: u32 = 3;
}

/// Values of Tunnel-Medium-Type (RFC 2868, section 3.2).
pub mod medium {
    /// IPv4.
    pub const IPV4: u32 = 1;
    /// IPv6.
    pub const IPV6: u32 = 2;
}

/// Values of Acct-Status-Type (RFC 2866, section 5.1).
pub mod status {
    /// Start.
    pub const START: u32 = 1;
    /// Stop.
    pub const STOP: u32 = 2;
    /// Interim-Update.
    pub const INTERIM_UPDATE: u32 = 3;
    /// Accounting-On.
    pub const ACCOUNTING_ON: u32 = 7;
    /// Accounting-Off.
    pub const ACCOUNTING_OFF: u32 = 8;
}

/// Values of Error-Cause (RFC 5176, section 3.5).
pub mod error_cause {
    /// Residual Session Context Removed.
    pub const RESIDUAL_CONTEXT_REMOVED: u32 = 201;
    /// Unsupported Attribute.
    pub const UNSUPPORTED_ATTRIBUTE: u32 = 401;
    /// Missing Attribute.
    pub const MISSING_ATTRIBUTE: u32 = 402;
    /// NAS Identification Mismatch.
    pub const NAS_IDENTIFICATION_MISMATCH: u32 = 403;
    /// Invalid Request.
    pub const INVALID_REQUEST: u32 = 404;
    /// Unsupported Service.
    pub const UNSUPPORTED_SERVICE: u32 = 405;
    /// Unsupported Extension.
    pub const UNSUPPORTED_EXTENSION: u32 = 406;
    /// Invalid Attribute Value.
    pub const INVALID_VALUE: u32 = 407;
    /// Administratively Prohibited.
    pub const PROHIBITED: u32 = 501;
    /// Session Context Not Found.
    pub const SESSION_NOT_FOUND: u32 = 503;
    /// Session Context Not Removable.
    pub const SESSION_NOT_REMOVABLE: u32 = 504;
    /// Resources Unavailable.
    pub const RESOURCES_UNAVAILABLE: u32 = 506;
    /// Multiple Session Selection Unsupported.
    pub const MULTIPLE_SESSIONS: u32 = 508;
}
