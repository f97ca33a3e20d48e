//! Addresses of members of security groups, and the entries of prefix lists.

use std::collections::HashMap;

use classyard_text::Fault;

use crate::builder::Builder;
use crate::document::Item;
use crate::networks::{Network, merge_networks, parse_address, parse_cidr};

/// What rules refer to.
#[derive(Default)]
pub(super) struct Inventory<'d> {
    /// The addresses of the network interfaces of each group.
    members: HashMap<&'d str, Vec<Network>>,
    prefix_lists: HashMap<&'d str, Vec<Network>>,
    /// The prefix lists of the last output with prefix lists.
    last_lists: Vec<&'d str>,
    /// True if the file has network interfaces.
    pub(super) has_interfaces: bool,
}

impl<'d> Inventory<'d> {
    /// Returns the addresses of a group's members, if an interface has the group.
    pub(super) fn members(&self, group: &str) -> Option<&[Network]> {
        self.members.get(group).map(Vec::as_slice)
    }

    /// Returns the networks of a prefix list, if its entries are in the file.
    pub(super) fn prefix_list(&self, list: &str) -> Option<&[Network]> {
        self.prefix_lists.get(list).map(Vec::as_slice)
    }

    /// Replaces the networks of each group and prefix list by the fewest networks.
    pub(super) fn merge(&mut self) {
        let lists = self.prefix_lists.values_mut();
        for networks in self.members.values_mut().chain(lists) {
            *networks = merge_networks(networks);
        }
    }

    /// Adds the value of a key of an output. False if the key is of no use.
    pub(super) fn add_section(
        &mut self,
        output: Item<'d>,
        key: Item<'d>,
        value: Item<'d>,
        builder: &mut Builder<'_>,
    ) -> Result<bool, Fault<'d>> {
        match key.scalar_text() {
            "NetworkInterfaces" => self.add_interfaces(output, builder)?,
            "Reservations" => {
                builder.note(
                    "members of security groups are the network interfaces in the file; \
                     `describe-instances` has those of instances only"
                        .to_owned(),
                );
                self.has_interfaces = true;
                for reservation in value.elements()? {
                    for instance in reservation.list("Instances")? {
                        self.add_interfaces(instance, builder)?;
                    }
                }
            }
            "PrefixLists" => self.add_prefix_lists(value)?,
            "Entries" => self.add_entries(output, key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_interfaces(
        &mut self,
        owner: Item<'d>,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        self.has_interfaces = true;
        for interface in owner.list("NetworkInterfaces")? {
            if let Err(fault) = self.add_interface(interface) {
                interface.report(builder, fault);
            }
        }
        Ok(())
    }

    fn add_interface(&mut self, interface: Item<'d>) -> Result<(), Fault<'d>> {
        let mut networks = Vec::new();
        for (list, key) in [
            ("PrivateIpAddresses", "PrivateIpAddress"),
            ("Ipv6Addresses", "Ipv6Address"),
        ] {
            for address in interface.list(list)? {
                networks.push(parse_address(address.require(key)?)?);
            }
        }
        for (list, key) in [
            ("Ipv4Prefixes", "Ipv4Prefix"),
            ("Ipv6Prefixes", "Ipv6Prefix"),
        ] {
            for prefix in interface.list(list)? {
                networks.push(parse_cidr(prefix.require(key)?, None)?);
            }
        }
        let groups = interface.list("Groups")?.into_iter();
        let groups = groups.map(|group| group.require("GroupId")?.string());
        for group in groups.collect::<Result<Vec<_>, _>>()? {
            self.members.entry(group).or_default().extend(&networks);
        }
        Ok(())
    }

    /// Adds names of prefix lists. Lists of AWS services have their networks too.
    fn add_prefix_lists(&mut self, lists: Item<'d>) -> Result<(), Fault<'d>> {
        self.last_lists.clear();
        for list in lists.elements()? {
            let id = list.require("PrefixListId")?.string()?;
            self.last_lists.push(id);
            if list.get("Cidrs").is_some() {
                let networks = list.list("Cidrs")?.into_iter();
                let networks = networks.map(|network| parse_cidr(network, None));
                let networks = networks.collect::<Result<Vec<_>, _>>()?;
                self.prefix_lists.entry(id).or_default().extend(networks);
            }
        }
        Ok(())
    }

    fn add_entries(
        &mut self,
        output: Item<'d>,
        key: Item<'d>,
        entries: Item<'d>,
    ) -> Result<(), Fault<'d>> {
        let id = match (
            output.optional_string("PrefixListId")?,
            &self.last_lists[..],
        ) {
            (Some(id), _) => id,
            (None, [id]) => *id,
            (None, lists) => {
                return Err(key.fault(
                    format!(
                        "entries of a prefix list that is not named, after an output with {} \
                         prefix lists",
                        lists.len()
                    ),
                    "an output of `describe-managed-prefix-lists` with this list alone before \
                     it, or the key `PrefixListId` beside `Entries`",
                ));
            }
        };
        let networks = entries.elements()?;
        let networks = networks.map(|entry| parse_cidr(entry.require("Cidr")?, None));
        let networks = networks.collect::<Result<Vec<_>, _>>()?;
        self.prefix_lists.entry(id).or_default().extend(networks);
        Ok(())
    }
}
