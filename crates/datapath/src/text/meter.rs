//! Reads lines of meters.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{Command, number, parts};

use crate::meter::{Band, BandKind, Meter, MeterCommand, MeterFlags, MeterId, MeterMod, MeterUnit};

/// Reads a meter to add: `meter=N,kbps|pktps[,burst][,stats]`, then `bands=` and for
/// each band `type=drop|dscp_remark,rate=N[,burst_size=N][,prec_level=N]`.
pub(super) fn read(line: &str) -> Result<MeterMod, Fault<'_>> {
    let (head, tail) = match line.split_once("bands=") {
        Some((head, tail)) => (head, tail),
        None => (line, &line[line.len()..]),
    };
    let (mut id, mut unit, mut flags) = (None, None, MeterFlags::default());
    for part in parts(head) {
        match part.split_once('=') {
            Some(("meter", value)) => id = Some(MeterId(number(value, "meter")?)),
            None if part == "kbps" => unit = Some(MeterUnit::Kilobits),
            None if part == "pktps" => unit = Some(MeterUnit::Packets),
            None if part == "burst" => flags.burst = true,
            None if part == "stats" => flags.stats = true,
            _ => {
                return Err(Fault::new(
                    part,
                    format!("unknown meter option {}", quoted(part)),
                    "`meter=N`, `kbps` or `pktps`, `burst`, `stats` and then `bands=…`",
                ));
            }
        }
    }
    let id = id.ok_or_else(|| Fault::missing(head, "`meter=N`"))?;
    let unit = unit.ok_or_else(|| Fault::missing(head, "`kbps` or `pktps`"))?;
    let mut bands: Vec<BandText<'_>> = Vec::new();
    for part in parts(tail) {
        let Some((name, value)) = part.split_once('=') else {
            return Err(unknown(part));
        };
        if name == "type" {
            bands.push(BandText::new(part, value)?);
            continue;
        }
        let Some(band) = bands.last_mut() else {
            let description = format!("{} before the first band", quoted(part));
            return Err(Fault::new(
                part,
                description,
                "`type=drop` or `type=dscp_remark`",
            ));
        };
        match name {
            "rate" => band.rate = Some(number(value, name)?),
            "burst_size" if flags.burst => band.burst = number(value, name)?,
            "burst_size" => {
                let description = "`burst_size` in a meter without `burst`";
                return Err(Fault::new(part, description, "`burst` before `bands=`"));
            }
            "prec_level" if band.is_remark => {
                band.level = Some(number(value, name)?);
            }
            _ => return Err(unknown(part)),
        }
    }
    let bands: Result<Vec<Band>, Fault<'_>> = bands.into_iter().map(BandText::band).collect();
    Ok(MeterMod {
        command: MeterCommand::Add,
        meter: Meter {
            id,
            unit,
            flags,
            bands: bands?,
        },
    })
}

/// Reads a meter to add or modify as [`read`] does, or to delete: `meter=N`, or `meter=all`
/// or nothing for all meters.
pub(super) fn read_command(line: &str, command: Command) -> Result<MeterMod, Fault<'_>> {
    let command = match command {
        Command::Add => MeterCommand::Add,
        Command::Modify { .. } => MeterCommand::Modify,
        Command::Delete { .. } => return Ok(MeterMod::delete(deleted(line)?)),
    };
    Ok(MeterMod {
        command,
        ..read(line)?
    })
}

/// Reads the meter or meters of a deletion.
fn deleted(line: &str) -> Result<MeterId, Fault<'_>> {
    let mut id = MeterId::ALL;
    for part in parts(line) {
        id = match part.split_once('=') {
            Some(("meter", "all")) => MeterId::ALL,
            Some(("meter", value)) => MeterId(number(value, "meter")?),
            _ => {
                let description = format!("{} in the deletion of a meter", quoted(part));
                return Err(Fault::new(part, description, "`meter=N` or `meter=all`"));
            }
        };
    }
    Ok(id)
}

fn unknown(part: &str) -> Fault<'_> {
    Fault::new(
        part,
        format!("unknown band option {}", quoted(part)),
        "`type=drop|dscp_remark`, `rate=N`, `burst_size=N`, and for dscp_remark `prec_level=N`",
    )
}

/// A band while its options are read.
struct BandText<'t> {
    part: &'t str,
    is_remark: bool,
    rate: Option<u32>,
    burst: u32,
    level: Option<u8>,
}

impl<'t> BandText<'t> {
    fn new(part: &'t str, kind: &'t str) -> Result<BandText<'t>, Fault<'t>> {
        let is_remark = match kind {
            "drop" => false,
            "dscp_remark" => true,
            _ => {
                let description = format!("{} is not a band type", quoted(kind));
                return Err(Fault::new(kind, description, "`drop` or `dscp_remark`"));
            }
        };
        Ok(BandText {
            part,
            is_remark,
            rate: None,
            burst: 0,
            level: None,
        })
    }

    fn band(self) -> Result<Band, Fault<'t>> {
        let missing = |name: &str| {
            let description = format!("a band without `{name}=`");
            Fault::new(self.part, description, format!("`{name}=N` after it"))
        };
        let kind = match (self.is_remark, self.level) {
            (false, _) => BandKind::Drop,
            (true, Some(level)) => BandKind::DscpRemark(level),
            (true, None) => return Err(missing("prec_level")),
        };
        Ok(Band {
            kind,
            rate: self.rate.ok_or_else(|| missing("rate"))?,
            burst: self.burst,
        })
    }
}
