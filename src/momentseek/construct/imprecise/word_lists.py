"""Word lists for finding and replacing names, compiled by hand for descriptions of what people do in videos.

Statistics of the corpus decide what is a name (see ``gazetteer``); these lists cover what statistics cannot tell:
which names are also ordinary words, which words stand before a name, and what a title says about its bearer.
"""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The set of the words in a text.

    >>> sorted(word_set("a the an"))
    ['a', 'an', 'the']
    """
    return frozenset(words.split())


TITLES: dict[str, str] = {
    **dict.fromkeys(("mr", "mister", "sir", "lord", "king", "prince", "uncle", "grandpa"), "man"),
    **dict.fromkeys(("mrs", "ms", "miss", "madam", "lady", "queen", "princess", "aunt", "grandma"), "woman"),
    **dict.fromkeys(("dr", "doctor", "doc"), "doctor"),
    **dict.fromkeys(("det", "detective"), "detective"),
    **dict.fromkeys(("prof", "professor"), "professor"),
    **dict.fromkeys(("capt", "captain"), "captain"),
    **dict.fromkeys(("lt", "lieutenant"), "lieutenant"),
    **dict.fromkeys(("sgt", "sergeant"), "sergeant"),
    "nurse": "nurse",
    "officer": "officer",
    "agent": "agent",
    "colonel": "colonel",
    "judge": "judge",
    "inspector": "inspector",
    "senator": "senator",
    "mayor": "mayor",
    "chief": "chief",
    "coach": "coach",
    "father": "priest",
    "sister": "nun",
}
"""A word before a name → what its bearer is."""

ABBREVIATIONS = word_set("dr mr mrs ms miss det capt lt sgt prof drs dets")
"""Titles that are nothing else, so that any capitalised word after them is a name."""
LOWER_TITLES = word_set("doctor detective captain nurse officer agent professor sergeant lieutenant doctors detectives")
"""Titles that people also write in lower case: detective Beckett."""

PLURAL_TITLES: dict[str, str] = {
    **dict.fromkeys(("drs", "doctors"), "doctors"),
    **dict.fromkeys(("dets", "detectives"), "detectives"),
    "officers": "officers",
    "agents": "agents",
    "nurses": "nurses",
}
"""A word before several names → what they are."""

TITLE_GENDER = {"man": "male", "woman": "female", "priest": "male", "nun": "female"}

ROLES = word_set(
    "husband wife friend mother father mom dad mum sister brother son daughter patient boss neighbor neighbour "
    "girlfriend boyfriend roommate colleague partner baby monkey dog cat uncle aunt cousin grandmother grandfather "
    "fiance fiancee bride groom waiter waitress nurse doctor detective captain officer agent lawyer actor actress "
    "student professor teacher guy girl boy man woman lady gentleman kid child suspect victim bartender ex "
    "secretary assistant physicist scientist writer author surgeon intern coroner host star worker coworker "
    "granddaughter grandson date"
)
"""Nouns that a name may follow to say who is meant: in "her husband Mike" the noun alone is enough."""

DETERMINERS = word_set(
    "a an the his her their its my your our this that these those some any every each another no "
    "both either neither two three four five six seven eight nine ten several many few all other own same"
)
ARTICLES = word_set("a an the his her their its my your our this that another")

ADJECTIVES = word_set(
    "sad happy angry upset young old little big small tall drunk confused surprised nervous excited worried shocked "
    "bald blonde blond naked sick injured unconscious asleep pregnant elderly beautiful pretty handsome concerned "
    "annoyed scared frightened bored tired disappointed embarrassed pensive emotional distraught stunned amused "
    "bewildered curious serious poor dead awake teary tearful sleepy smug giddy young-looking shirtless barefoot "
    "fake real younger older teenage adult"
)
NOT_ADJECTIVES = word_set(
    "building painting clothing ring ceiling evening morning string king thing being meeting wedding dressing "
    "living parking something nothing anything everything earring wing bed need seed weed shed speed"
)

ORDINARY_WORDS = word_set(
    "castle house penny will chase park mark ray bill cross tag page hunt robin lily amber violet honey slaughter "
    "stark star grey gray green brown black white young thirteen foreman masters gates marshall chandler hope faith "
    "grace joy rose daisy iris ivy ruby pearl crystal jade dawn april may june summer autumn eve angel art bob buck "
    "bud chip chuck cliff dean dick drew duke earl frank gene grant guy hank harry hunter jack jay jerry jimmy john "
    "josh lance major mason max mike miles miller nick norm pat patience pete piper ralph reed rich rob rod rusty "
    "sandy "
    "skip sky sonny stew sue ted teddy tony trip van victor wade ward wit woody baker cook carter fisher porter potter "
    "tailor turner walker archer bishop king prince price banks wells woods rivers lake field hill stone ball bell "
    "bush church cash case coffee cole crane day drum fall fields fox gale glass gold hall hand hart hawk head heart "
    "hook horn key knight lamb lane law leaf light lock long love low mace mane march marsh martini masters may merry "
    "mills mist moon moss neat nest oak olive paige pan pine pitt pool post powers prior quill rain raven rush sage "
    "sands self sharp shaw short silver singer snow spring steel storm strong swan sweet tate temple thorn tuck wild "
    "wing winter wise wolf wood worth wren yates read reader  bear bird booth burns driver "
    "poppy ginger holly heather hazel melody harmony charity chance chase colt dallas destiny dusty echo fern flora "
    "gill goldie jewel kitty laurel mercy misty myrtle petal prudence rocky sierra stormy sunny tiger trinity "
    "unity velvet whitney willow rain river brook cotton chess spot wash shields jean denim jasmine clay doc cat "
    "sally tommy carol nova don sol rex pepper sheriff colonel captain detective"
)
"""Words that are names and also words: in lower case they count as names only where the show's cast has them."""

NEVER_NAMES = word_set(
    "january february july september october november december monday tuesday wednesday thursday "
    "friday saturday sunday christmas thanksgiving halloween easter valentine valentines hanukkah american british "
    "english french german italian spanish chinese japanese korean indian asian african russian irish mexican thai "
    "indian-american african-american european latino latina hispanic caucasian arabic jewish catholic christian "
    "muslim greek swedish dutch turkish polish tv iv mri ct ekg er dvd cd pc nypd fbi cia usb ipad iphone laptop "
    "id pjs pj ok vr uv ac vhs dna i i'm i'll ii iii x-ray xray america york london paris vegas california chicago "
    "america's manhattan brooklyn god jesus santa buddha internet skype facebook google starbucks pepsi coke oreo "
    "jenga frisbee polaroid kleenex band-aid velcro tupperware foosball wii xbox playstation lego legos barbie "
    "batman superman spiderman flash spock bible happy new day star trek wars the and or then he she they it his her "
    "sr jr pr xrays cds pi mount mars porsche marvel hulk cambridge mistress explanations debris pictionary "
    "him them who what where when while as after before a an in on at of to with for from by but so if is are was"
)
"""Capitalised words that are no character: the calendar, peoples, places, brands, acronyms, costumes."""

NOT_NAME_PAIRS = frozenset(
    {
        ("x", "ray"),
        ("teddy", "bear"),
        ("mario", "kart"),
        ("kama", "sutra"),
        ("central", "park"),
        ("st", "patrick"),
        ("new", "jersey"),
    }
)
"""Words side by side of which the second is no name there."""

FEMALE_PRONOUNS = word_set("she her hers herself")
MALE_PRONOUNS = word_set("he him his himself")
NOUN_GENDER = {
    **dict.fromkeys(
        word_set("man men guy guys boy boys gentleman male husband father dad brother son boyfriend"), "male"
    ),
    **dict.fromkeys(
        word_set("woman women lady ladies girl girls female wife mother mom sister daughter girlfriend"), "female"
    ),
}
LOCATIVE_WORDS = word_set("in into inside outside enters entering enter near via across around onto through")
VERBS_BE = {"is": "are", "was": "were", "has": "have", "isn't": "aren't", "wasn't": "weren't", "doesn't": "don't"}
"""Verbs whose number is put right after names have become "two people" (paper, Table 2, third example)."""
ADVERBS = word_set("then also both all just still now suddenly each not slowly quickly together again finally")
PAST_VERBS = word_set(
    "left went sat stood took ran came got gave held made said saw told began put walked did had fell threw "
    "kept let met spoke turned brought drank ate drove hung hit laid lay led lost rose sang shook shut slept slid"
)
