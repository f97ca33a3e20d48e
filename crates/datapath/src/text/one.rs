//! Reads one message from a text, for [`str::parse`].

use std::str::FromStr;

use super::{Problem, read};
use crate::flow::FlowMod;
use crate::pipeline::Message;

/// The expected text in the problem of a text that does not have one message.
const ONE_MESSAGE: &str = "one flow, group, meter, port or table, on one line";

impl FromStr for Message {
    type Err = Problem;

    /// Reads a message that adds a flow, a group, a meter or a port, or configures a table,
    /// as a line of a pipeline's text.
    ///
    /// ```
    /// use classyard_datapath::pipeline::Message;
    ///
    /// let message: Message = "group_id=1,type=all,bucket=actions=output:2".parse()?;
    /// assert!(matches!(message, Message::Group(_)));
    /// let refused = "table=0,tcp,tp_dst=x actions=drop".parse::<Message>().unwrap_err();
    /// assert_eq!((refused.line, refused.column), (1, 20));
    /// # Ok::<(), classyard_datapath::text::Problem>(())
    /// ```
    fn from_str(text: &str) -> Result<Message, Problem> {
        let read = read(text);
        let mut located = read.map_err(|problems| problems.shown()[0].clone())?;
        match (located.pop(), located.pop()) {
            (Some(line), None) => Ok(line.message),
            (Some(second), Some(_)) => {
                let line = text.lines().nth(second.line - 1).unwrap_or_default();
                Err(other(second.line, line, "another message"))
            }
            (None, _) => Err(other(1, text, "no message")),
        }
    }
}

impl FromStr for FlowMod {
    type Err = Problem;

    /// Reads a flow to add, as `ovs-ofctl` writes it.
    ///
    /// ```
    /// use classyard_datapath::flow::FlowMod;
    ///
    /// let flow: FlowMod = "table=1,priority=10,tcp,tp_dst=443 actions=output:2".parse()?;
    /// assert_eq!(flow.priority, 10);
    /// # Ok::<(), classyard_datapath::text::Problem>(())
    /// ```
    fn from_str(text: &str) -> Result<FlowMod, Problem> {
        match text.parse()? {
            Message::Flow(flow) => Ok(flow),
            _ => {
                let message = "a message that is not a flow".to_owned();
                Err(Problem::at(1, text, text, message, "a flow".to_owned()))
            }
        }
    }
}

fn other(line: usize, text: &str, found: &str) -> Problem {
    Problem::at(line, text, text, found.to_owned(), ONE_MESSAGE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_prints_is_read_back() {
        for text in [
            "table=3,priority=7,cookie=0x5,tcp,tp_dst=80 actions=push_vlan:0x8100,goto_table:4",
            "group_id=1,type=select,bucket=weight:1,actions=output:1",
            "meter=1,pktps,bands=type=drop,rate=100",
            "table_id=1,max_entries=1000,eviction",
            "port=1,name=eth0,link=down,speed=2500M,no-receive,no-forward,no-flood",
            "port=local,name=\"br 0\"",
            "port=4294967040",
        ] {
            let message: Message = text.parse().unwrap();
            let written = message.to_string();
            assert!(!text.starts_with("port") || written == text, "{written}");
            assert_eq!(written.parse(), Ok(message), "{text}");
        }
    }

    #[test]
    fn anything_but_one_message_is_refused() {
        let refused = |text: &str| text.parse::<Message>().unwrap_err().to_string();
        assert_eq!(
            refused(""),
            format!("1:1: no message; expected {ONE_MESSAGE}")
        );
        assert_eq!(
            refused("actions=drop\npriority=1 actions=drop"),
            format!("2:1: another message; expected {ONE_MESSAGE}")
        );
        let bad = refused("tp_dst=80x actions=drop");
        assert!(bad.starts_with("1:"), "{bad}");
        let group = "group_id=1,type=all".parse::<FlowMod>().unwrap_err();
        assert_eq!(group.expected, "a flow");
    }
}
