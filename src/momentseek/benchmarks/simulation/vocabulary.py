"""The words of the simulated world, as tables: a concept per line, its synonyms, and what it goes with.

No phrase belongs to two concepts, so that a text can be read back into concepts (``lexicon``).
"""

from __future__ import annotations

ACTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "moving": {
        "enter": ("walks in", "comes in", "steps inside"),
        "leave": ("walks out", "leaves", "goes outside"),
        "run": ("runs past", "rushes by", "hurries past"),
        "pace": ("paces back and forth", "wanders around", "walks around"),
        "climb": ("climbs the stairs", "goes upstairs"),
        "jump": ("jumps", "leaps"),
    },
    "posture": {
        "sit": ("sits down", "takes a seat"),
        "stand": ("stands up", "gets up", "rises"),
        "lie": ("lies down", "stretches out"),
        "kneel": ("kneels down", "crouches"),
        "lean": ("leans back", "leans against the wall"),
        "fall": ("falls over", "trips", "stumbles"),
    },
    "gesture": {
        "nod": ("nods", "nods along"),
        "shake": ("shakes no", "disagrees silently"),
        "wave": ("waves", "waves goodbye"),
        "shrug": ("shrugs", "shrugs it off"),
        "clap": ("claps", "applauds"),
        "salute": ("salutes", "bows"),
    },
    "mood": {
        "laugh": ("laughs", "giggles", "chuckles"),
        "smile": ("smiles", "grins"),
        "cry": ("cries", "weeps", "sobs"),
        "sigh": ("sighs", "exhales deeply"),
        "yawn": ("yawns", "looks bored"),
        "frown": ("frowns", "scowls"),
    },
    "handling": {
        "lift": ("picks up", "lifts", "grabs"),
        "lay": ("puts down", "sets down", "lays down"),
        "carry": ("holds", "carries", "clutches"),
        "throw": ("throws", "tosses", "hurls"),
        "drop": ("drops", "lets go of"),
        "hide": ("hides", "conceals"),
    },
    "using": {
        "open": ("opens", "unlocks"),
        "close": ("closes", "shuts"),
        "search": ("searches", "rummages through", "looks through"),
        "point": ("points at", "gestures at"),
        "clean": ("cleans", "wipes"),
        "repair": ("repairs", "fixes"),
    },
    "table": {
        "eat": ("eats", "bites into", "chews"),
        "drink": ("drinks", "sips", "sips from"),
        "pour": ("pours", "serves"),
        "cook": ("cooks", "prepares"),
        "cut": ("cuts", "carves"),
        "season": ("seasons", "salts"),
    },
    "paper": {
        "read": ("reads", "studies", "looks over"),
        "write": ("writes on", "scribbles on", "signs"),
        "tear": ("tears up", "rips up"),
        "fold": ("folds", "unfolds"),
        "sort": ("sorts", "arranges"),
        "stamp": ("stamps", "seals"),
    },
    "dressing": {
        "wear": ("puts on", "slips on"),
        "undress": ("takes off", "removes"),
        "adjust": ("adjusts", "straightens"),
        "hang": ("hangs up", "hangs"),
        "iron": ("irons", "presses"),
        "wash": ("washes", "rinses"),
    },
    "device": {
        "answer": ("answers", "talks into"),
        "type": ("types on", "taps on"),
        "watch": ("watches", "looks at"),
        "plug": ("switches on", "turns on"),
        "photograph": ("films with", "records with"),
        "unplug": ("switches off", "turns off"),
    },
    "affection": {
        "hug": ("hugs", "embraces"),
        "kiss": ("kisses", "gives a kiss to"),
        "pat": ("pats", "comforts"),
        "dance": ("dances with", "waltzes with"),
        "carry off": ("lifts in the arms", "sweeps away"),
        "tickle": ("tickles", "nudges"),
    },
    "conflict": {
        "push": ("pushes", "shoves"),
        "hit": ("hits", "punches", "slaps"),
        "chase": ("chases", "runs after"),
        "pull": ("pulls", "drags"),
        "arrest": ("arrests", "handcuffs"),
        "scold": ("threatens", "shakes a fist at"),
    },
    "attention": {
        "stare": ("stares at", "glares at"),
        "turn": ("turns to", "faces"),
        "approach": ("walks over to", "approaches"),
        "follow": ("follows", "walks behind"),
        "greet": ("shakes hands with", "greets"),
        "avoid": ("backs away from", "avoids"),
    },
    "exchange": {
        "hand": ("hands", "gives", "passes"),
        "show": ("shows", "presents"),
        "offer": ("offers", "holds out"),
        "return": ("returns", "hands back"),
        "sell": ("sells", "trades"),
        "toss": ("slides", "throws over"),
    },
}
"""Group of confusable actions → action → its phrases in the third person."""

OBJECT_CLASSES: dict[str, tuple[str, ...]] = {
    "handling": ("crockery", "papers", "devices", "food", "clothes", "luggage"),
    "using": ("luggage", "furniture"),
    "table": ("food",),
    "paper": ("papers",),
    "dressing": ("clothes",),
    "device": ("devices",),
    "exchange": ("crockery", "papers", "devices", "food", "luggage"),
}
"""Kinds of objects a group of actions is done to; the others need none."""
DRINKS = ("drink", "pour")
TWO_PERSON_GROUPS = ("affection", "conflict", "attention", "exchange")
"""Groups whose actions need a second person."""

OBJECTS: dict[str, dict[str, tuple[str, ...]]] = {
    "crockery": {
        "mug": ("mug", "cup"),
        "plate": ("plate", "dish"),
        "bowl": ("bowl", "basin"),
        "knife": ("knife", "blade"),
        "bottle": ("bottle", "flask"),
        "glass": ("glass", "goblet"),
        "pan": ("pan", "skillet"),
        "fork": ("fork", "spoon"),
    },
    "food": {
        "cake": ("cake", "pie"),
        "sandwich": ("sandwich", "burger"),
        "pizza": ("pizza", "slice"),
        "salad": ("salad", "greens"),
        "soup": ("soup", "stew"),
        "apple": ("apple", "orange"),
        "bread": ("bread", "baguette"),
        "steak": ("steak", "roast"),
        "cookie": ("cookie", "muffin"),
    },
    "drinks": {
        "coffee": ("coffee", "espresso"),
        "wine": ("wine", "champagne"),
        "beer": ("beer", "lager"),
        "tea": ("tea", "infusion"),
        "juice": ("juice", "lemonade"),
        "water": ("water", "soda"),
        "whiskey": ("whiskey", "brandy"),
    },
    "papers": {
        "letter": ("letter", "envelope"),
        "book": ("book", "novel"),
        "file": ("file", "folder"),
        "photo": ("photo", "picture"),
        "newspaper": ("newspaper", "magazine"),
        "map": ("map", "chart"),
        "contract": ("contract", "agreement"),
        "notebook": ("notebook", "diary"),
        "ticket": ("ticket", "receipt"),
    },
    "devices": {
        "phone": ("phone", "cellphone"),
        "laptop": ("laptop", "computer"),
        "television": ("television", "screen"),
        "camera": ("camera", "camcorder"),
        "radio": ("radio", "stereo"),
        "tablet": ("tablet", "reader"),
        "microphone": ("microphone", "headset"),
        "printer": ("printer", "copier"),
    },
    "clothes": {
        "coat": ("coat", "jacket"),
        "hat": ("hat", "cap"),
        "dress": ("dress", "gown"),
        "glasses": ("glasses", "spectacles"),
        "scarf": ("scarf", "shawl"),
        "shirt": ("shirt", "blouse"),
        "shoes": ("shoes", "boots"),
        "gloves": ("gloves", "mittens"),
        "tie": ("tie", "bowtie"),
    },
    "luggage": {
        "bag": ("bag", "purse"),
        "box": ("box", "package"),
        "suitcase": ("suitcase", "trunk"),
        "basket": ("basket", "hamper"),
        "backpack": ("backpack", "rucksack"),
        "briefcase": ("briefcase", "attache"),
        "crate": ("crate", "barrel"),
    },
    "furniture": {
        "door": ("door", "gate"),
        "window": ("window", "blinds"),
        "drawer": ("drawer", "cupboard"),
        "fridge": ("fridge", "refrigerator"),
        "cabinet": ("cabinet", "wardrobe"),
        "curtain": ("curtain", "drapes"),
        "locker": ("locker", "safe"),
        "chest": ("chest", "dresser"),
    },
}

PLACES: dict[str, tuple[str, ...]] = {
    "kitchen": ("kitchen", "kitchenette"),
    "office": ("office", "workplace"),
    "hallway": ("hallway", "corridor"),
    "bedroom": ("bedroom", "guestroom"),
    "living room": ("living room", "lounge"),
    "hospital": ("hospital room", "ward"),
    "laboratory": ("laboratory", "lab"),
    "street": ("street", "sidewalk"),
    "park": ("park", "garden"),
    "bar": ("bar", "pub"),
    "restaurant": ("restaurant", "diner"),
    "car": ("car", "taxi"),
    "station": ("police station", "precinct"),
    "classroom": ("classroom", "lecture hall"),
    "shop": ("shop", "store"),
    "balcony": ("balcony", "rooftop"),
    "bathroom": ("bathroom", "washroom"),
    "elevator": ("elevator", "lift cabin"),
}

SPEECH: dict[str, dict[str, tuple[str, ...]]] = {
    "informing": {
        "tell": ("tells", "informs"),
        "explain": ("lectures", "briefs"),
        "warn": ("warns", "cautions"),
        "remind": ("reminds", "updates"),
    },
    "asking": {
        "ask": ("asks", "questions"),
        "tease": ("teases", "mocks"),
        "argue": ("argues with", "quarrels with"),
        "consult": ("consults", "interviews"),
    },
}

TOPICS: dict[str, dict[str, tuple[str, ...]]] = {
    "family": {
        "wedding": ("wedding", "marriage"),
        "baby": ("baby", "pregnancy"),
        "divorce": ("divorce", "breakup"),
        "mother": ("mother in law", "grandmother"),
        "birthday": ("birthday", "anniversary"),
    },
    "work": {
        "promotion": ("promotion", "new job"),
        "meeting": ("meeting", "conference"),
        "deadline": ("deadline", "late report"),
        "boss": ("boss", "manager"),
        "money": ("money", "salary"),
    },
    "illness": {
        "surgery": ("surgery", "operation"),
        "fever": ("fever", "symptoms"),
        "accident": ("accident", "injury"),
        "pills": ("pills", "medication"),
        "test": ("blood test", "biopsy"),
    },
    "crime": {
        "murder": ("murder", "killing"),
        "robbery": ("robbery", "burglary"),
        "alibi": ("alibi", "excuse"),
        "witness": ("witness", "informant"),
        "gun": ("gun", "weapon"),
    },
    "leisure": {
        "party": ("party", "celebration"),
        "game": ("game", "match"),
        "movie": ("movie", "film"),
        "concert": ("concert", "band"),
        "vacation": ("vacation", "trip"),
    },
    "home": {
        "rent": ("rent", "lease"),
        "dinner": ("dinner", "supper"),
        "neighbor": ("neighbor", "roommate"),
        "dog": ("dog", "puppy"),
        "key": ("missing key", "lock"),
    },
    "science": {
        "theory": ("theory", "equation"),
        "experiment": ("experiment", "trial"),
        "rocket": ("rocket", "satellite"),
        "paper": ("thesis", "publication"),
        "prize": ("prize", "award"),
    },
    "romance": {
        "date": ("date", "blind date"),
        "crush": ("crush", "secret love"),
        "ring": ("ring", "engagement"),
        "flowers": ("flowers", "roses"),
        "secret": ("secret", "rumor"),
    },
}

COLORS: dict[str, tuple[str, ...]] = {
    "red": ("red", "scarlet"),
    "blue": ("blue", "navy"),
    "green": ("green", "emerald"),
    "yellow": ("yellow", "golden"),
    "black": ("black", "dark"),
    "white": ("white", "pale"),
    "brown": ("brown", "tan"),
    "gray": ("gray", "silver"),
}

MANNERS: dict[str, tuple[str, ...]] = {
    "slow": ("slowly", "gently"),
    "quick": ("quickly", "hastily"),
    "angry": ("angrily", "furiously"),
    "happy": ("happily", "cheerfully"),
    "nervous": ("nervously", "anxiously"),
    "sad": ("sadly", "gloomily"),
}

IDLE = ("talk", "listen", "wait", "look away", "move about", "gesture along")
"""What people do when nothing worth a caption happens; nobody asks for it."""

SHOWS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "harbor": (
        ("Nora", "Clara", "Ingrid", "Ruth"),
        ("Victor", "Paul", "Oscar"),
        ("kitchen", "living room", "bar", "balcony", "street", "bedroom", "hallway"),
    ),
    "midtown": (
        ("Dana", "Sylvia", "Beatrice"),
        ("Martin", "Felix", "Hugo", "Leon"),
        ("office", "restaurant", "elevator", "street", "bar", "bathroom", "car"),
    ),
    "nightward": (
        ("Helen", "Teresa", "Yvonne", "Judith"),
        ("Gregor", "Simon", "Anton"),
        ("hospital", "laboratory", "hallway", "office", "elevator", "car", "park"),
    ),
    "lakeside": (
        ("Agnes", "Lydia", "Miriam"),
        ("Walter", "Norman", "Edgar", "Bruno"),
        ("park", "balcony", "kitchen", "bedroom", "shop", "living room", "restaurant"),
    ),
    "precinct": (
        ("Olga", "Vera", "Edith"),
        ("Conrad", "Boris", "Dennis", "Ralph"),
        ("station", "street", "car", "bar", "shop", "hallway", "laboratory"),
    ),
    "faculty": (
        ("Rosa", "Elena", "Gloria", "Wanda"),
        ("Albert", "Kurt", "Roland"),
        ("classroom", "laboratory", "office", "restaurant", "living room", "bathroom", "balcony"),
    ),
}
"""Show → women, men, places."""

PERSON_WORDS = {
    "female": ("woman", "women", "she", "her"),
    "male": ("man", "men", "he", "him"),
    "person": ("person", "people", "someone"),
}
