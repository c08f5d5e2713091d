//! The syntax of DiskSim's parameter files (libparam): blocks of `name = value` between braces, lists between brackets,
//! `source FILE` in place of a block, `#` to the end of a line.
//!
//! Invariants:
//! 1. Every parameter keeps its file and line.
//! 2. A file that includes itself is refused.

use super::ImportError;

/// Most levels of files within files: more levels mean that files include each other in a circle.
const DEPTH_MAX: usize = 8;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A number or a word.
    Word(String),
    /// Values between brackets.
    List(Vec<Value>),
    /// Parameters between braces.
    Block(Block),
}

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// Name of the parameter, with single blanks between its words.
    pub name: String,
    /// Value of the parameter: a word, a list or a block.
    pub value: Value,
    /// File and line of the parameter, as `FILE, line NUMBER`.
    pub place: String,
}

/// Parameters between braces.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Kind of the block, such as `disksim_disk` or `dm_layout_g1`.
    pub kind: String,
    /// Name of the block, which follows its kind; empty if there is none.
    pub name: String,
    /// The parameters in the block, in the order of the file.
    pub parameters: Vec<Parameter>,
    /// File and line at which the block begins, as `FILE, line NUMBER`.
    pub place: String,
}

impl Block {
    /// Returns the parameter called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// An item at the top level of a file.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A block.
    Block(Block),
    /// `instantiate [ names ] as KIND`.
    Instance {
        /// Names of the instances.
        names: Vec<String>,
        /// Kind of the instances.
        kind: String,
    },
    /// The words and brackets of a topology.
    Topology(Vec<String>),
}

/// A function that reads a file by name; the error is the reason.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Parses `file` and the files that it names.
pub(super) fn parse(file: &str, read: Read<'_>) -> Result<Vec<Item>, ImportError> {
    let mut items = Vec::new();
    parse_into(file, read, 0, &mut items)?;
    Ok(items)
}

fn parse_into(file: &str, read: Read<'_>, depth: usize, items: &mut Vec<Item>) -> Result<(), ImportError> {
    if depth > DEPTH_MAX {
        return Err(ImportError::new(file, "files name each other in a circle: break it".into()));
    }
    let text = read(file).map_err(|reason| ImportError::new(file, reason))?;
    let mut parser = Parser { file, tokens: tokens(&text), at: 0, read, depth };
    parser.items(items)
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Token {
    text: String,
    line: usize,
}

/// Splits a text into words and the signs `= , { } [ ]`.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let mut word = String::new();
        let flush = |word: &mut String, tokens: &mut Vec<Token>| {
            if !word.is_empty() {
                tokens.push(Token { text: std::mem::take(word), line: index + 1 });
            }
        };
        for letter in line.chars() {
            match letter {
                '=' | ',' | '{' | '}' | '[' | ']' => {
                    flush(&mut word, &mut tokens);
                    tokens.push(Token { text: letter.to_string(), line: index + 1 });
                }
                _ if letter.is_whitespace() => flush(&mut word, &mut tokens),
                _ => word.push(letter),
            }
        }
        flush(&mut word, &mut tokens);
    }
    tokens
}

struct Parser<'a> {
    file: &'a str,
    tokens: Vec<Token>,
    at: usize,
    read: Read<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|token| token.text.as_str())
    }

    fn place(&self) -> String {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line);
        format!("{}, line {line}", self.file)
    }

    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, ImportError> {
        Err(ImportError { place: self.place(), reason: reason.into() })
    }

    fn take(&mut self) -> Result<String, ImportError> {
        match self.tokens.get(self.at) {
            Some(token) => {
                self.at += 1;
                Ok(token.text.clone())
            }
            None => self.refuse("the file ends within a block: a brace or bracket is missing"),
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), ImportError> {
        match self.peek() {
            Some(found) if found == sign => {
                self.at += 1;
                Ok(())
            }
            found => {
                let found = found.unwrap_or("the end").to_string();
                self.refuse(format!("expected '{sign}', found '{found}'"))
            }
        }
    }

    fn items(&mut self, items: &mut Vec<Item>) -> Result<(), ImportError> {
        while let Some(word) = self.peek() {
            match word {
                "source" => {
                    self.at += 1;
                    let file = self.take()?;
                    parse_into(&file, self.read, self.depth + 1, items)?;
                }
                "instantiate" => items.push(self.instance()?),
                "topology" => {
                    self.at += 1;
                    items.push(Item::Topology(self.topology()?));
                }
                "," => self.at += 1,
                _ => {
                    let block = self.block()?;
                    items.push(Item::Block(block));
                }
            }
        }
        Ok(())
    }

    fn instance(&mut self) -> Result<Item, ImportError> {
        self.at += 1;
        self.expect("[")?;
        let mut names = Vec::new();
        loop {
            match self.take()?.as_str() {
                "]" => break,
                "," => {}
                name => names.push(name.to_string()),
            }
        }
        self.expect("as")?;
        Ok(Item::Instance { names, kind: self.take()? })
    }

    /// Reads the words of a topology, up to the bracket that closes the first one.
    fn topology(&mut self) -> Result<Vec<String>, ImportError> {
        let (mut words, mut depth) = (Vec::new(), 0);
        loop {
            let word = self.take()?;
            depth += i32::from(word == "[") - i32::from(word == "]");
            let closes = word == "]" && depth == 0;
            words.push(word);
            if closes {
                return Ok(words);
            }
        }
    }

    /// Reads `KIND [NAME] { parameters }`.
    fn block(&mut self) -> Result<Block, ImportError> {
        let place = self.place();
        let mut head = Vec::new();
        while self.peek().is_some_and(|word| word != "{") {
            let word = self.take()?;
            if ["=", ",", "}", "[", "]"].contains(&word.as_str()) || head.len() == 2 {
                self.at -= 1;
                return self.refuse(format!("expected a block such as 'disksim_disk NAME {{ … }}', found '{word}'"));
            }
            head.push(word);
        }
        self.expect("{")?;
        let mut parameters = Vec::new();
        loop {
            match self.peek() {
                Some("}") => {
                    self.at += 1;
                    break;
                }
                Some(",") => self.at += 1,
                Some(_) => parameters.push(self.parameter()?),
                None => return self.refuse("the file ends within a block: a brace is missing"),
            }
        }
        let mut head = head.into_iter();
        let (kind, name) = (head.next().unwrap_or_default(), head.next().unwrap_or_default());
        Ok(Block { kind, name, parameters, place })
    }

    fn parameter(&mut self) -> Result<Parameter, ImportError> {
        let place = self.place();
        let mut words = Vec::new();
        while self.peek() != Some("=") {
            let word = self.take()?;
            if [",", "{", "}", "[", "]"].contains(&word.as_str()) {
                self.at -= 1;
                return self.refuse(format!("expected 'name = value', found '{} {word}'", words.join(" ")));
            }
            words.push(word);
        }
        self.at += 1;
        Ok(Parameter { name: words.join(" "), value: self.value()?, place })
    }

    fn value(&mut self) -> Result<Value, ImportError> {
        match self.peek() {
            Some("[") => {
                self.at += 1;
                let mut values = Vec::new();
                loop {
                    match self.peek() {
                        Some("]") => {
                            self.at += 1;
                            return Ok(Value::List(values));
                        }
                        Some(",") => self.at += 1,
                        _ => values.push(self.value()?),
                    }
                }
            }
            Some("source") => {
                self.at += 1;
                let file = self.take()?;
                let mut items = Vec::new();
                parse_into(&file, self.read, self.depth + 1, &mut items)?;
                let block = items.into_iter().find_map(|item| match item {
                    Item::Block(block) => Some(block),
                    _ => None,
                });
                block.map(Value::Block).ok_or_else(|| ImportError::new(&file, "has no block in it".into()))
            }
            Some("{" | "}" | "]" | "=" | ",") | None => self.refuse("a value is missing"),
            Some(_) => {
                let is_block = |token: Option<&Token>| token.is_some_and(|token| token.text == "{");
                if is_block(self.tokens.get(self.at + 1))
                    || is_block(self.tokens.get(self.at + 2)) && !self.ends_after_word()
                {
                    return Ok(Value::Block(self.block()?));
                }
                let mut word = self.take()?;
                // A name of several words, or one in quotes.
                while self.peek().is_some_and(|next| !["=", ",", "{", "}", "[", "]"].contains(&next)) {
                    word = format!("{word} {}", self.take()?);
                }
                Ok(Value::Word(word.trim_matches('"').to_string()))
            }
        }
    }

    /// Returns whether the next word is a whole value: a sign or the end follows it.
    fn ends_after_word(&self) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| token.text.as_str());
        next.is_none_or(|next| ["=", ",", "}", "[", "]"].contains(&next))
    }
}
