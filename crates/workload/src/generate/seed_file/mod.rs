//! Reader of ClassBench's parameter files ("seeds").
//!
//! # Format
//! Lines of text in sections. A section begins with a line `-NAME` and ends with
//! a line that starts with `#`; fields are separated by blanks or tabs.
//!
//! | section | lines |
//! |---|---|
//! | `-scale` | the number of rules of the measured set |
//! | `-prots` | protocol (0 for any), its probability, and the probabilities of the 25 port classes |
//! | `-flags` | protocol, then `flags/mask,probability` … |
//! | `-extra` | the number of extra fields; then protocol and `values,probability` for each |
//! | `-spar` `-spem` `-dpar` `-dpem` | probability, `low:high`: ranges and single ports of source and destination |
//! | `-wc_wc` … `-em_em` | `total,probability` of the total length of both prefixes, then `length,probability` … of the source prefix |
//! | `-snest` `-dnest` | the maximum number of nested prefixes |
//! | `-sskew` `-dskew` | level, probability of one child, of two, skew |
//! | `-pcorr` | level, probability that source and destination continue to agree |
//!
//! Flags and extra fields are read and kept, but rules of five fields cannot hold them,
//! so the generator does not use them.
//!
//! # References
//! D. E. Taylor and J. S. Turner, ClassBench: a packet classification benchmark,
//! IEEE/ACM Transactions on Networking 15 (3), 2007; [TM19] §IV.A.
//!
//! [TM19]: classyard::papers#tm19

use std::path::Path;

use super::profile::{
    LEVELS, Level, PORT_CLASSES, PairShare, PortClass, PortPool, PortShare, PortSide, Profile,
    ProfileError, ProfileParts, ProtocolShare, TrieShape,
};
use crate::diagnostic::{Loaded, Problem, Problems, ReadError, ReadOptions};
use crate::formats::read_text_file;
use crate::limits::FileLimit;

/// The content of a parameter file.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedFile {
    scale: u32,
    protocols: Vec<ProtocolShare>,
    flags: Vec<(u8, Vec<FlagShare>)>,
    extra_fields: u32,
    extra: Vec<(u8, Vec<ExtraField>)>,
    source_ports: PortPool,
    destination_ports: PortPool,
    pairs: [Vec<PairShare>; PORT_CLASSES],
    source: TrieShape,
    destination: TrieShape,
    correlation: [f64; LEVELS],
}

/// A match on TCP flags (as the file calls it) with its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlagShare {
    /// The flags' values.
    pub value: u16,
    /// The mask of the flags that are tested.
    pub mask: u16,
    /// The share of rules with this match.
    pub share: f64,
}

/// A field beyond the five.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExtraField {
    /// The number of values in a set of the file's scale.
    pub values: u32,
    /// The probability that the field is not a wildcard.
    pub share: f64,
}

impl SeedFile {
    /// Reads the text of a parameter file; `source` is its name for messages.
    ///
    /// # Errors
    /// [`ReadError::Bad`] lists the bad lines and the missing items.
    pub fn parse(
        source: &str,
        text: &str,
        options: &ReadOptions,
    ) -> Result<Loaded<SeedFile>, ReadError> {
        let mut reader = Reader::new(source, text);
        for (line, text) in (1..).zip(text.lines()) {
            reader.line(line, text);
        }
        reader.finish(options)
    }

    /// Reads a parameter file of at most [`FileLimit::SEED_FILE`]; a gzip file is
    /// unpacked.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read, is too long, or is not a text or not a
    /// parameter file.
    pub fn read(path: &Path, options: &ReadOptions) -> Result<Loaded<SeedFile>, ReadError> {
        let text = read_text_file(path, FileLimit::SEED_FILE)?;
        SeedFile::parse(&path.display().to_string(), &text, options)
    }

    /// Returns the number of rules of the measured set.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// Returns the flags that the rules of each protocol test. The generator does not
    /// use them.
    #[must_use]
    pub fn flags(&self) -> &[(u8, Vec<FlagShare>)] {
        &self.flags
    }

    /// Returns the extra fields of each protocol. The generator does not use them.
    #[must_use]
    pub fn extra(&self) -> &[(u8, Vec<ExtraField>)] {
        &self.extra
    }

    /// Returns the figures in the form of a profile.
    #[must_use]
    pub fn to_parts(&self, name: &str) -> ProfileParts {
        ProfileParts {
            name: name.to_owned(),
            summary: "from a ClassBench parameter file".to_owned(),
            reference_rules: self.scale,
            protocols: self.protocols.clone(),
            source_ports: self.source_ports.clone(),
            destination_ports: self.destination_ports.clone(),
            pairs: self.pairs.clone(),
            source: self.source.clone(),
            destination: self.destination.clone(),
            correlation: self.correlation,
        }
    }
}

impl Profile {
    /// Creates the profile that a ClassBench parameter file describes.
    ///
    /// # Errors
    /// [`ProfileError`] if the file's figures are inconsistent.
    pub fn from_seed_file(name: &str, seed: &SeedFile) -> Result<Profile, ProfileError> {
        Profile::new(seed.to_parts(name))
    }
}

/// The sections; a `bool` is true for the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Scale,
    Protocols,
    Flags,
    Extra,
    Ranges(bool),
    Exact(bool),
    Pairs(usize),
    Nesting(bool),
    Skew(bool),
    Correlation,
    /// An unknown name; the section's lines are skipped.
    Unknown,
}

const FIXED: [(&str, Section); 13] = [
    ("scale", Section::Scale),
    ("prots", Section::Protocols),
    ("flags", Section::Flags),
    ("extra", Section::Extra),
    ("spar", Section::Ranges(false)),
    ("spem", Section::Exact(false)),
    ("dpar", Section::Ranges(true)),
    ("dpem", Section::Exact(true)),
    ("snest", Section::Nesting(false)),
    ("dnest", Section::Nesting(true)),
    ("sskew", Section::Skew(false)),
    ("dskew", Section::Skew(true)),
    ("pcorr", Section::Correlation),
];

impl Section {
    fn named(name: &str) -> Option<Section> {
        let fixed = FIXED.iter().find(|(known, _)| *known == name);
        fixed
            .map(|&(_, section)| section)
            .or_else(|| PortClass::from_seed_name(name).map(|class| Section::Pairs(class.index())))
    }
}

/// A bad part of a line: the part, its description, the expected content.
type Fault<'a> = (&'a str, String, String);

struct Reader<'a> {
    file: SeedFile,
    problems: Problems,
    section: Option<Section>,
    seen: Vec<(Section, usize)>,
    /// The last line; missing items are reported there.
    last: (usize, &'a str),
    /// For each protocol, its line and the line's part for each port class.
    class_parts: Vec<(usize, &'a str, Vec<&'a str>)>,
}

impl<'a> Reader<'a> {
    fn new(source: &str, _text: &'a str) -> Reader<'a> {
        let shape = TrieShape {
            nesting: u32::MAX,
            levels: [Level {
                two_children: 1.0,
                skew: 0.0,
            }; LEVELS],
        };
        Reader {
            file: SeedFile {
                scale: 0,
                protocols: Vec::new(),
                flags: Vec::new(),
                extra_fields: 0,
                extra: Vec::new(),
                source_ports: PortPool::default(),
                destination_ports: PortPool::default(),
                pairs: std::array::from_fn(|_| Vec::new()),
                source: shape.clone(),
                destination: shape,
                correlation: [0.0; LEVELS],
            },
            problems: Problems::new(source),
            section: None,
            seen: Vec::new(),
            last: (1, ""),
            class_parts: Vec::new(),
        }
    }

    fn line(&mut self, line: usize, text: &'a str) {
        self.last = (line, text);
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return;
        }
        if trimmed.starts_with('#') {
            self.section = None;
            return;
        }
        let result = match trimmed.strip_prefix('-') {
            Some(name) if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                self.open(line, trimmed, name)
            }
            _ => self.content(line, text, trimmed),
        };
        if let Err((part, found, expected)) = result {
            self.problems
                .push(Problem::at(line, text, part, found, expected));
        }
    }

    fn open(&mut self, line: usize, part: &'a str, name: &str) -> Result<(), Fault<'a>> {
        let Some(section) = Section::named(name) else {
            self.section = Some(Section::Unknown);
            return Err((
                part,
                format!("an unknown section `{part}`"),
                "-scale, -prots, -flags, -extra, -spar, -spem, -dpar, -dpem, a pair of port \
                 classes such as -wc_em, -snest, -sskew, -dnest, -dskew or -pcorr"
                    .to_owned(),
            ));
        };
        self.section = Some(section);
        if let Some((_, first)) = self.seen.iter().find(|(seen, _)| *seen == section) {
            self.section = Some(Section::Unknown);
            return Err((
                part,
                format!("a second section `{part}`; the first is in line {first}"),
                "each section once".to_owned(),
            ));
        }
        self.seen.push((section, line));
        Ok(())
    }

    fn content(&mut self, line: usize, text: &'a str, trimmed: &'a str) -> Result<(), Fault<'a>> {
        let Some(section) = self.section else {
            return Err((
                trimmed,
                "text outside of a section".to_owned(),
                "a section such as `-scale`, or `#` before a remark".to_owned(),
            ));
        };
        let fields: Vec<&'a str> = trimmed.split_whitespace().collect();
        match section {
            Section::Unknown => Ok(()),
            Section::Scale => {
                let [scale] = exactly(&fields, trimmed, "one number of rules")?;
                let range = 1..=u32::MAX;
                self.file.scale = whole(scale, "a number of rules, at least 1", range)?;
                Ok(())
            }
            Section::Nesting(destination) => {
                let [nesting] = exactly(&fields, trimmed, "one number of nested prefixes")?;
                let nesting = whole(nesting, "a number of nested prefixes", 0..=u32::MAX)?;
                self.shape(destination).nesting = nesting;
                Ok(())
            }
            Section::Protocols => self.protocol(line, text, trimmed, &fields),
            Section::Flags => self.flags(&fields),
            Section::Extra => self.extra(&fields),
            Section::Ranges(destination) => {
                let port = port(trimmed, &fields)?;
                self.pool(destination).ranges.push(port);
                Ok(())
            }
            Section::Exact(destination) => {
                let port = port(trimmed, &fields)?;
                self.pool(destination).exact.push(port);
                Ok(())
            }
            Section::Pairs(class) => self.pairs(class, &fields),
            Section::Skew(destination) => {
                let form = "a level, the probabilities of one and two children, and the skew";
                let [level, one, two, skew] = exactly(&fields, trimmed, form)?;
                let index = level_index(level)?;
                // A node has one child or two, so the second number is redundant.
                probability(two)?;
                self.shape(destination).levels[index] = Level {
                    two_children: 1.0 - probability(one)?,
                    skew: probability(skew)?,
                };
                Ok(())
            }
            Section::Correlation => {
                let [level, agree] = exactly(&fields, trimmed, "a level and a probability")?;
                let index = level_index(level)?;
                self.file.correlation[index] = probability(agree)?;
                Ok(())
            }
        }
    }

    fn shape(&mut self, destination: bool) -> &mut TrieShape {
        if destination {
            &mut self.file.destination
        } else {
            &mut self.file.source
        }
    }

    fn pool(&mut self, destination: bool) -> &mut PortPool {
        if destination {
            &mut self.file.destination_ports
        } else {
            &mut self.file.source_ports
        }
    }

    fn protocol(
        &mut self,
        line: usize,
        text: &'a str,
        trimmed: &'a str,
        fields: &[&'a str],
    ) -> Result<(), Fault<'a>> {
        let form = "a protocol, its probability and those of the 25 port classes";
        let [protocol, share, classes @ ..] = fields else {
            return Err(wrong_count(trimmed, fields.len(), 2 + PORT_CLASSES, form));
        };
        if classes.len() != PORT_CLASSES {
            return Err(wrong_count(trimmed, fields.len(), 2 + PORT_CLASSES, form));
        }
        let number = protocol_number(protocol)?;
        let share = probability(share)?;
        let mut shares = [0.0; PORT_CLASSES];
        for (share, part) in shares.iter_mut().zip(classes) {
            *share = probability(part)?;
        }
        if share > 0.0 && shares.iter().all(|&share| share <= 0.0) {
            return Err((
                trimmed,
                "25 port classes of probability 0".to_owned(),
                "at least one above 0".to_owned(),
            ));
        }
        let protocol_number = (number != 0).then_some(number);
        if self
            .file
            .protocols
            .iter()
            .any(|known| known.protocol == protocol_number)
        {
            return Err((
                protocol,
                format!("protocol {number} a second time"),
                "each protocol once".to_owned(),
            ));
        }
        self.file.protocols.push(ProtocolShare {
            protocol: protocol_number,
            share,
            classes: shares,
        });
        self.class_parts.push((line, text, classes.to_vec()));
        Ok(())
    }

    fn flags(&mut self, fields: &[&'a str]) -> Result<(), Fault<'a>> {
        let protocol = protocol_number(fields[0])?;
        let mut flags = Vec::with_capacity(fields.len() - 1);
        for part in &fields[1..] {
            let wrong = || {
                (
                    *part,
                    format!("`{part}`"),
                    "flags, mask and probability, such as 0x0000/0x0200,0.25".to_owned(),
                )
            };
            let (bits, share) = part.split_once(',').ok_or_else(wrong)?;
            let (value, mask) = bits.split_once('/').ok_or_else(wrong)?;
            let hex = |text: &str| {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
                digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
            };
            flags.push(FlagShare {
                value: hex(value).ok_or_else(wrong)?,
                mask: hex(mask).ok_or_else(wrong)?,
                share: probability(share)?,
            });
        }
        self.file.flags.push((protocol, flags));
        Ok(())
    }

    fn extra(&mut self, fields: &[&'a str]) -> Result<(), Fault<'a>> {
        if let [count] = fields {
            self.file.extra_fields = whole(count, "a number of extra fields", 0..=1000)?;
            return Ok(());
        }
        let protocol = protocol_number(fields[0])?;
        let mut list = Vec::with_capacity(fields.len() - 1);
        for part in &fields[1..] {
            let (values, share) = pair(part, "a number of values and a probability")?;
            list.push(ExtraField {
                values: whole(values, "a number of values", 0..=u32::MAX)?,
                share: probability(share)?,
            });
        }
        if list.len() != self.file.extra_fields as usize {
            return Err((
                fields[1],
                format!("{} extra fields", list.len()),
                format!(
                    "{}, the number that the section declares",
                    self.file.extra_fields
                ),
            ));
        }
        self.file.extra.push((protocol, list));
        Ok(())
    }

    fn pairs(&mut self, class: usize, fields: &[&'a str]) -> Result<(), Fault<'a>> {
        let (total, total_share) = pair(fields[0], "a total length and its probability")?;
        let total_length: u8 = whole(total, "a total length from 0 to 64", 0..=64)?;
        let total_share = probability(total_share)?;
        if fields.len() == 1 {
            return Err((
                fields[0],
                "a total length without source lengths".to_owned(),
                "`length,probability` of the source after it".to_owned(),
            ));
        }
        let mut list: Vec<PairShare> = Vec::with_capacity(fields.len() - 1);
        for part in &fields[1..] {
            let (length, share) = pair(part, "a source length and its probability")?;
            let low = total_length.saturating_sub(32);
            let high = total_length.min(32);
            let what = format!(
                "a source length from {low} to {high}, for both together are {total_length}"
            );
            let source: u8 = whole(length, &what, low.into()..=high.into())?;
            list.push(PairShare {
                source,
                destination: total_length - source,
                share: probability(share)?,
            });
        }
        // The file's source shares are relative to the total's share.
        let sum: f64 = list.iter().map(|pair| pair.share).sum();
        if sum > 0.0 {
            for pair in &mut list {
                pair.share *= total_share / sum;
            }
        }
        let known = &self.file.pairs[class];
        if known
            .iter()
            .any(|pair| pair.source + pair.destination == total_length)
        {
            return Err((
                total,
                format!("total length {total_length} a second time"),
                "each total length once".to_owned(),
            ));
        }
        self.file.pairs[class].append(&mut list);
        Ok(())
    }

    fn finish(mut self, options: &ReadOptions) -> Result<Loaded<SeedFile>, ReadError> {
        let (line, text) = self.last;
        let missing = |found: &str, expected: &str| {
            Problem::at(line, text, "", found.to_owned(), expected.to_owned())
        };
        let mut fatal = false;
        for (section, name) in [
            (Section::Scale, "-scale"),
            (Section::Protocols, "-prots"),
            (Section::Skew(false), "-sskew"),
            (Section::Skew(true), "-dskew"),
        ] {
            if !self.seen.iter().any(|(seen, _)| *seen == section) {
                fatal = true;
                self.problems.push(missing(
                    "the end of the file",
                    &format!("a section `{name}`"),
                ));
            }
        }
        if self.file.scale == 0 && self.problems.is_empty() {
            fatal = true;
            self.problems
                .push(missing("no scale", "a number of rules under `-scale`"));
        }
        if self.file.protocols.is_empty() && self.problems.is_empty() {
            fatal = true;
            self.problems
                .push(missing("no protocol", "protocols under `-prots`"));
        }
        fatal |= self.check_uses();
        if fatal || self.file.scale == 0 || self.file.protocols.is_empty() {
            // Without these sections there is no profile, even if bad lines may be
            // skipped.
            return Err(ReadError::Bad(self.problems));
        }
        // All required sections are present, so the good lines are enough.
        options.finish(self.problems.with_good_lines(1), self.file)
    }

    /// Checks that every port class in use has prefix lengths and ports. Returns true
    /// if some are missing.
    fn check_uses(&mut self) -> bool {
        let mut lacking = false;
        let file = &self.file;
        for (protocol, (line, text, parts)) in file.protocols.iter().zip(&self.class_parts) {
            if protocol.share <= 0.0 {
                continue;
            }
            for (index, class) in PortClass::ALL.into_iter().enumerate() {
                if protocol.classes[index] <= 0.0 {
                    continue;
                }
                let lists = [
                    (class.source, &file.source_ports, "-spar", "-spem"),
                    (class.destination, &file.destination_ports, "-dpar", "-dpem"),
                ];
                let mut needs = lists.iter().filter_map(|&(side, pool, ar, em)| match side {
                    PortSide::Range => pool.ranges.is_empty().then_some(ar.to_owned()),
                    PortSide::Exact => pool.exact.is_empty().then_some(em.to_owned()),
                    _ => None,
                });
                let name = class.seed_name();
                let need = match file.pairs[index].iter().any(|pair| pair.share > 0.0) {
                    false => Some(format!("-{name}")),
                    true => needs.next(),
                };
                if let Some(need) = need {
                    lacking = true;
                    self.problems.push(Problem::at(
                        *line,
                        text,
                        parts[index],
                        format!("port class {name} is used, but section `{need}` is empty"),
                        format!("probability 0 here, or lines under `{need}`"),
                    ));
                }
            }
        }
        lacking
    }
}

fn wrong_count<'a>(part: &'a str, actual: usize, required: usize, form: &str) -> Fault<'a> {
    (
        part,
        format!("{actual} fields"),
        format!("{required}: {form}"),
    )
}

fn exactly<'a, const N: usize>(
    fields: &[&'a str],
    trimmed: &'a str,
    form: &str,
) -> Result<[&'a str; N], Fault<'a>> {
    fields
        .try_into()
        .map_err(|_| wrong_count(trimmed, fields.len(), N, form))
}

fn whole<'a, T: TryFrom<u32>>(
    part: &'a str,
    what: &str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<T, Fault<'a>> {
    let number = part.parse::<u32>().ok().filter(|n| range.contains(n));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| (part, format!("`{part}`"), what.to_owned()))
}

/// Probabilities in these files are rounded, so slightly more than 1 is read as 1.
fn probability(part: &str) -> Result<f64, Fault<'_>> {
    let number = part.parse::<f64>().ok();
    match number.filter(|n| (0.0..=1.000_01).contains(n)) {
        Some(number) => Ok(number.min(1.0)),
        None => Err((
            part,
            format!("`{part}`"),
            "a probability from 0 to 1".to_owned(),
        )),
    }
}

fn protocol_number(part: &str) -> Result<u8, Fault<'_>> {
    whole(part, "a protocol number from 0 to 255", 0..=255)
}

fn level_index(part: &str) -> Result<usize, Fault<'_>> {
    let level: u8 = whole(part, "a level from 0 to 32", 0..=32)?;
    Ok(level.into())
}

fn pair<'a>(part: &'a str, what: &str) -> Result<(&'a str, &'a str), Fault<'a>> {
    part.split_once(',').ok_or_else(|| {
        (
            part,
            format!("`{part}`"),
            format!("{what}, with a comma between them"),
        )
    })
}

fn port<'a>(trimmed: &'a str, fields: &[&'a str]) -> Result<PortShare, Fault<'a>> {
    let [share, range] = exactly(fields, trimmed, "a probability and low:high")?;
    let share = probability(share)?;
    let (low, high) = range.split_once(':').ok_or_else(|| {
        (
            range,
            format!("`{range}`"),
            "two ports as low:high".to_owned(),
        )
    })?;
    let what = "a port from 0 to 65535";
    let (low, high): (u16, u16) = (whole(low, what, 0..=65535)?, whole(high, what, 0..=65535)?);
    if low > high {
        return Err((
            range,
            format!("the inverted range {low}:{high}"),
            "the lower port first".to_owned(),
        ));
    }
    Ok(PortShare { low, high, share })
}

#[cfg(test)]
mod tests;
