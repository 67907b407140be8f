//! Options of the protocols, with the defaults of the authors' programs.

use serde::{Deserialize, Serialize};

/// Options of SABUL: `CSabulSender::setRate` and the constants of `CSabul::CSabul`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SabulOptions {
    /// Rate at first, bit/s, by packets of 1500 bytes.
    pub initial_rate_bps: u64,
    /// Minimum rate, bit/s.
    pub min_rate_bps: u64,
    /// Maximum rate, bit/s.
    pub max_rate_bps: u64,
    /// UDP payload of a full packet, bytes; 4 of them are the header (`m_iDefaultPktSize`).
    pub packet_size: u16,
    /// Maximum packets between the first missing one and the newest (`FlagSize`).
    pub flag_size: u32,
}

impl Default for SabulOptions {
    /// `sender.cpp`: `m_dInterval` = `m_dUpperLimit` = 10 us, `m_dLowerLimit` = 1000 us of 1500 bytes.
    /// `sabul.cpp`: packets of 1472 bytes. `recver.h`: `FlagSize` = 25600.
    fn default() -> SabulOptions {
        SabulOptions {
            initial_rate_bps: 1_200_000_000,
            min_rate_bps: 12_000_000,
            max_rate_bps: 1_200_000_000,
            packet_size: 1472,
            flag_size: 25_600,
        }
    }
}

/// Options of RBUDP: the arguments of QUANTA's `sendstream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RbudpOptions {
    /// Sending rate, bit/s of data.
    pub rate_bps: u64,
    /// Data of a full packet, bytes; the header of 4 bytes is not counted.
    pub packet_size: u16,
    /// Size of a block of an unlimited flow, bytes.
    pub buffer: u64,
}

impl Default for RbudpOptions {
    /// `sendstream.c`: blocks of 64 MiB and, in its usage, packets of 1460 bytes. The rate has no
    /// default there; this one is `DEF_UDP_SEND_RATE` of the copy in iRODS, 600,000 kbit/s.
    fn default() -> RbudpOptions {
        RbudpOptions { rate_bps: 600_000_000, packet_size: 1460, buffer: 64 << 20 }
    }
}

/// Options of Tsunami: the client's settings (`client/config.c`, lines 73 to 90).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TsunamiOptions {
    /// Target rate, bit/s of data.
    pub target_rate_bps: u64,
    /// Data of a block, bytes; the header of 6 bytes is not counted.
    pub block_size: u16,
    /// Threshold of the error rate, thousandths of a percent.
    pub error_rate: u32,
    /// Numerator of the factor of the inter-packet delay above the threshold.
    pub slower_num: u16,
    /// Its denominator.
    pub slower_den: u16,
    /// Numerator of the factor at or below the threshold.
    pub faster_num: u16,
    /// Its denominator.
    pub faster_den: u16,
    /// Share of the history in the smoothed error rate, percent.
    pub history: u8,
}

impl Default for TsunamiOptions {
    fn default() -> TsunamiOptions {
        TsunamiOptions {
            target_rate_bps: 650_000_000,
            block_size: 1024,
            error_rate: 7500,
            slower_num: 25,
            slower_den: 24,
            faster_num: 5,
            faster_den: 6,
            history: 25,
        }
    }
}

/// The options of one of the protocols.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Options {
    /// Of SABUL.
    Sabul(SabulOptions),
    /// Of RBUDP.
    Rbudp(RbudpOptions),
    /// Of Tsunami.
    Tsunami(TsunamiOptions),
}

impl Options {
    /// The protocols by the name of their transport.
    pub const NAMES: &'static [&'static str] = &["sabul", "rbudp", "tsunami"];

    /// The defaults of the protocol of this name; `None` if there is no such protocol.
    pub fn named(protocol: &str) -> Option<Options> {
        Some(match protocol {
            "sabul" => Options::Sabul(SabulOptions::default()),
            "rbudp" => Options::Rbudp(RbudpOptions::default()),
            "tsunami" => Options::Tsunami(TsunamiOptions::default()),
            _ => return None,
        })
    }

    /// Data of a full packet, and the size of its UDP payload, bytes.
    pub fn packet(&self) -> (u16, u16) {
        match self {
            Options::Sabul(sabul) => (sabul.packet_size.saturating_sub(4), sabul.packet_size),
            Options::Rbudp(rbudp) => (rbudp.packet_size, rbudp.packet_size.saturating_add(4)),
            Options::Tsunami(tsunami) => (tsunami.block_size, tsunami.block_size.saturating_add(6)),
        }
    }

    /// The first field whose value does not fit the others, with what would be valid.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        match self {
            Options::Sabul(sabul) => {
                let (min, max) = (sabul.min_rate_bps, sabul.max_rate_bps);
                if min > max {
                    return Err(("min_rate", "at most max_rate".to_owned()));
                }
                if !(min..=max).contains(&sabul.initial_rate_bps) {
                    return Err(("initial_rate", "from min_rate to max_rate".to_owned()));
                }
            }
            Options::Rbudp(_) => {}
            Options::Tsunami(tsunami) => {
                if tsunami.slower_num <= tsunami.slower_den {
                    return Err(("slower_num", "more than slower_den: a longer delay".to_owned()));
                }
                if tsunami.faster_num >= tsunami.faster_den {
                    return Err(("faster_num", "less than faster_den: a shorter delay".to_owned()));
                }
            }
        }
        Ok(())
    }
}
