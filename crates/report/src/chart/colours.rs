//! A colour for each name, which does not change from picture to picture.

use std::collections::{BTreeMap, BTreeSet};

use plotters::style::RGBColor;

/// The colours of known engines. People with colour-blindness can distinguish the
/// first seven (Okabe and Ito); on most pictures engines also have different marks.
const KNOWN: [(&str, RGBColor); 13] = [
    ("tuplemerge", RGBColor(0, 114, 178)),
    ("forest", RGBColor(213, 94, 0)),
    ("rte_acl", RGBColor(0, 158, 115)),
    ("tss", RGBColor(204, 121, 167)),
    ("tuplemerge-offline", RGBColor(86, 180, 233)),
    ("tuplemerge-vpp", RGBColor(230, 159, 0)),
    ("linear", RGBColor(90, 90, 90)),
    ("partition-sort", RGBColor(17, 119, 51)),
    ("smart-split", RGBColor(136, 34, 85)),
    ("hyper-split", RGBColor(51, 34, 136)),
    ("rfc", RGBColor(102, 17, 0)),
    ("bit-vector", RGBColor(68, 170, 153)),
    ("tss:mask=addresses", RGBColor(153, 153, 51)),
];

/// The colours of all other names, such as engines with options.
const OTHERS: [RGBColor; 8] = [
    RGBColor(170, 68, 153),
    RGBColor(221, 204, 119),
    RGBColor(140, 86, 75),
    RGBColor(0, 0, 0),
    RGBColor(187, 187, 187),
    RGBColor(148, 103, 189),
    RGBColor(23, 190, 207),
    RGBColor(255, 152, 150),
];

/// The colours of the names on a page, all different.
pub(super) struct Colours(BTreeMap<String, RGBColor>);

impl Colours {
    /// Chooses colours for these names, independently of their order. A known engine
    /// has its own colour; another name gets a colour by its hash. If two names hash
    /// to the same colour, the later one in alphabetical order gets the next free
    /// colour.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Colours {
        let names: BTreeSet<&str> = names.collect();
        let mut colours = BTreeMap::new();
        let mut free = OTHERS.to_vec();
        for name in names {
            let known = KNOWN.iter().find(|(known, _)| *known == name);
            let colour = match known {
                Some(&(_, colour)) => colour,
                None => {
                    let chosen = OTHERS[hash(name) % OTHERS.len()];
                    let taken = free.iter().position(|&colour| colour == chosen);
                    match (taken, free.is_empty()) {
                        (Some(at), _) => free.remove(at),
                        (None, false) => free.remove(hash(name) % free.len()),
                        (None, true) => mixed(name, &colours),
                    }
                }
            };
            colours.insert(name.to_owned(), colour);
        }
        Colours(colours)
    }

    /// Returns the colour of a name, or black for an unknown name.
    pub(super) fn get(&self, name: &str) -> RGBColor {
        self.0.get(name).copied().unwrap_or(RGBColor(0, 0, 0))
    }
}

/// Returns a colour that is still free, for pages with very many names.
fn mixed(name: &str, colours: &BTreeMap<String, RGBColor>) -> RGBColor {
    let free = (0..).find_map(|turn| {
        let bits = hash(&format!("{name}{turn}"));
        // Dark enough on white.
        let part = |shift: usize| u8::try_from(bits >> shift & 0xbf).expect("it is 8 bits");
        let colour = RGBColor(part(0), part(8), part(16));
        let taken = colours.values().any(|&other| other == colour);
        let known = KNOWN.iter().any(|&(_, other)| other == colour);
        (!taken && !known).then_some(colour)
    });
    free.expect("a page has fewer names than there are colours")
}

/// FNV-1a, the same on every machine.
fn hash(name: &str) -> usize {
    let start = 0x811c_9dc5_u32;
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct(colours: &Colours) -> usize {
        let mut seen = Vec::new();
        for colour in colours.0.values() {
            if !seen.contains(colour) {
                seen.push(*colour);
            }
        }
        seen.len()
    }

    #[test]
    fn names_have_their_colours_whatever_the_order() {
        let names = [
            "forest",
            "rte_acl",
            "tss",
            "tss:mask=addresses",
            "mine",
            "tuplemerge",
        ];
        let forward = Colours::of(names.into_iter());
        let backward = Colours::of(names.into_iter().rev());
        assert_eq!(forward.0, backward.0);
        assert_eq!(distinct(&forward), names.len());
        for (name, colour) in KNOWN {
            assert_eq!(Colours::of([name, "x", "y"].into_iter()).get(name), colour);
        }
        // A name alone on a page has the same colour as next to known engines.
        assert_eq!(
            Colours::of(["mine"].into_iter()).get("mine"),
            forward.get("mine")
        );
    }

    #[test]
    fn every_registered_engine_and_many_names_are_told_apart() {
        let engines = classyard::engine::ENGINES.iter().map(|engine| engine.name);
        let colours = Colours::of(engines.clone().chain(["rte_acl"]));
        assert_eq!(distinct(&colours), engines.count() + 1);
        let names: Vec<String> = (0..200).map(|number| format!("engine {number}")).collect();
        let colours = Colours::of(
            names
                .iter()
                .map(String::as_str)
                .chain(KNOWN.map(|(name, _)| name)),
        );
        assert_eq!(distinct(&colours), names.len() + KNOWN.len());
    }
}
