"""Word lists for finding and replacing names, and the words of a query with their places.

Statistics of the corpus decide what is a name (see ``names``); the lists cover what statistics cannot tell: which
names are also ordinary words, which words stand before a name, and what a title says about its bearer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


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


FEMALE_NAMES = word_set(
    """
    annabelle colette haley jen jodi josie kyra lara layla lesley mikayla scarlett tori talia esme fran susanne
    abby abigail ada addie adele adriana agnes aileen aisha alana alexandra alexis alice alicia alison allison alma
    alyssa amanda amber amelia amy ana andrea angela angelica angelina angie anita ann anna annabel anne annette
    annie
    antonia anya april arlene ashley audrey aurora ava barbara beatrice becca becky bella bernadette bernice bertha
    beth bethany betsy betty beverley beverly bianca blanche bonnie brandi brenda bridget brittany brooke
    caitlin callie
    camila camille candace candice cara carla carly carmen carol carole caroline carolyn carrie cassandra cassie
    catherine cathy cecilia celeste charlene charlotte chelsea cheryl chloe christa christina christine cindy claire
    clara clarissa claudia colleen connie constance cora corinne courtney cristina crystal cynthia daisy dana
    danielle
    daphne darlene dawn debbie deborah debra dee deirdre denise diana diane dina dolores donna dora doreen doris
    dorothy edith edna eileen elaine eleanor elena elise eliza elizabeth ella ellen ellie eloise elsa elsie
    emily emma
    erica erika erin estelle esther ethel eugenia eunice eva eve evelyn faith fay faye felicia felicity fiona flora
    florence frances francesca gabriela gabrielle gail gemma genevieve georgia georgina geraldine gertrude
    gillian gina
    ginny gladys glenda gloria grace greta gretchen guadalupe gwen gwendolyn hailey hannah harriet hayley hazel
    heather
    heidi helen helena henrietta hilary hilda holly hope ida imogen ines ingrid irene iris irma isabel isabella
    isobel
    ivy izzie izzy jackie jacqueline jade jana jane janet janice janine jasmine jean jeanette jeanne jenna jennifer
    jenny jessica jill joan joanna joanne jocelyn jodie josephine joy joyce juanita judith judy julia julianne julie
    juliet justine kaitlyn kara karen kate katherine kathleen kathryn kathy katie katrina kayla keira kelly
    kelsey kim
    kimberly kirsten kitty krista kristen kristin kristina kristine kylie laura lauren laurie lea leah leila lena
    leonora leslie leticia lexie lila lilian lillian lilly lily linda lindsay lindsey lisa liz lizzie lois lola lora
    loretta lori lorna lorraine louisa louise lucia lucille lucinda lucy lupe lydia lynn mabel mackenzie maddie
    madeline madge madison maggie maisie mandy marcia margaret margarita margo margot maria mariah marianne marie
    marilyn marina marion marissa marjorie marlene marsha martha mary matilda maude maureen mavis maxine may
    maya meg
    megan melanie melinda melissa mercedes meredith mia michelle mildred millie mindy minnie miranda miriam
    moira mollie
    molly mona monica monique muriel myra nadia nadine nancy naomi natalie natasha nell nellie nicole nicki
    nikki nina
    nora noreen norma olga olive olivia opal paige pam pamela patricia patsy patti patty paula pauline pearl peggy
    penelope penny petra phoebe phyllis polly priscilla priya rachael rachel ramona raquel rebecca regina renee
    rhonda
    rita roberta rosa rosalie rose rosemary rosie roxanne ruby ruth sabrina sadie sally samantha sandra sara sarah
    savannah selena selma serena shannon sharon sheila shelly sherry shirley silvia simone sofia sonia sophia sophie
    stacey stacy stella stephanie sue summer susan susanna susie suzanne sybil sylvia tabitha tamara tammy tanya
    tara
    tasha teresa tessa thelma theresa tiffany tina toni tracy trisha trudy ursula valerie vanessa vera veronica
    vicky
    victoria viola violet virginia vivian wanda wendy whitney wilma winifred yolanda yvette yvonne zoe zoey
    """
)
MALE_NAMES = word_set(
    """
    curt damian malcom phillipe richie sal zane esteban brock bronson brandt carson doyle gerry leopold nash neal
    aaron abe abel abraham adam adrian ahmed aidan al alan albert alec alejandro alex alexander alfred ali allan
    allen
    alvin amir amos andre andrew andy angelo anthony antonio archie arnold art arthur arturo austin barney barry
    bart
    bartholomew ben benedict benjamin bennett benny bernard bernie bert bill billy blaine blake bob bobby boris brad
    bradley brandon brendan brent brett brian bruce bruno bryan bryce byron caleb calvin carl carlos carter cary
    cecil
    cedric cesar chad chandler charles charlie chester chris christian christopher chuck clarence clark claude
    clayton
    clifford clint clyde cody cole colin conrad corey craig curtis cyril dale damien damon dan daniel danny darren
    darryl dave david dean denis dennis denny derek derrick dexter diego dmitri dominic don donald donnie doug
    douglas
    drew duncan dustin dwight dylan earl ed eddie edgar edmund eduardo edward edwin eli elias elijah elliot elliott
    elmer emilio emmett enrique eric erik ernest ernie ethan eugene evan everett felipe felix ferdinand fernando
    floyd francis francisco frank franklin fred freddie freddy frederick gabe gabriel gareth garrett gary gavin gene
    geoff geoffrey george gerald gerard gilbert giovanni glen glenn gordon graham grant greg gregory gunther gus guy
    hank hans harold harrison harry harvey hector henry herbert herman horace howard howie hubert hugh hugo humphrey
    ian igor ira isaac isaiah ivan jack jackson jacob jacques jake jamal james jared jason jasper javier jay jeff
    jeffrey jeremy jerome jerry jesse jim jimmy joe joel joey john johnny jon jonah jonathan jorge jose joseph
    josh joshua juan
    julian julio julius justin karl keith ken kenneth kenny kevin kirk kurt kyle lance larry lars laurence lawrence
    lee leo leon leonard leroy leroy lester levi lewis liam lionel lloyd logan lorenzo louie louis lucas luis luke
    luther lyle malcolm manny manuel marc marcel marco marcus mario mark marshall martin marty marvin mason mathew
    matt matthew maurice max maxwell melvin michael mickey miguel mike miles milo milton mitch mitchell mohammed
    monty
    morris moses murray nate nathan nathaniel ned neil nelson nicholas nick nigel noah noel norman oliver omar
    orlando
    oscar otis otto owen pablo patrick paul pedro percy perry pete peter phil philip phillip pierre preston quentin
    rafael raj rajesh ralph ramon randall randy raul ray raymond reggie reginald rene rex ricardo richard rick ricky
    rob robbie robert roberto rocco rod rodney roger roland roman ron ronald ronnie rory ross roy ruben rudy rufus
    rupert russell ryan salvador sam sammy samuel saul scott sean sebastian sergei sergio seth seymour shane shaun
    shawn sheldon sherman sidney silas simon solomon spencer stan stanley stefan stephen steve steven stewart stuart
    ted teddy terence terrence theo theodore thomas tim timmy timothy toby todd tom tommy tony travis trevor tristan
    troy tyler tyrone victor vikram vince vincent vladimir wade wallace walter warren wayne wesley wil wilbur
    wilfred
    will willard william willie winston wyatt xavier zach zachary zack zeke
    """
)
EITHER_NAMES = word_set(
    """
    addison ainsley angel avery bailey billie blair cameron casey charley dakota devon drew finley frankie hadley
    harper hayden hunter jamie jessie jody jordan jules kai kendall kerry kit lane lou morgan pat quinn reese remy
    riley robin rowan sage sandy sascha sasha shelby sidney skyler sky stevie sydney taylor terry tracey val
    """
)
FIRST_NAMES = FEMALE_NAMES | MALE_NAMES | EITHER_NAMES


def gender_in_table(name: str) -> str | None:
    """The gender of a first name: ``"female"``, ``"male"``, or None if it is both or not in the table.

    >>> gender_in_table("Monica"), gender_in_table("ross"), gender_in_table("Robin"), gender_in_table("Beckett")
    ('female', 'male', None, None)
    """
    key = name.lower()
    if key in EITHER_NAMES:
        return None
    return "female" if key in FEMALE_NAMES else "male" if key in MALE_NAMES else None


WORD_PATTERN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*['’]?|(?<=Dr\. )\d+")
"""Words; and a number where a name belongs: Dr. 13."""
POSSESSIVE = re.compile(r"^(?P<base>.+?)(?P<own>['’][sS]|(?<=[szxSZX])['’])$")
SENTENCE_END = re.compile(r"[.!?]")


@dataclass(frozen=True, slots=True)
class WordToken:
    """A word of a query, at ``text[start:end]``; ``own`` is the possessive ending that follows it."""

    text: str
    start: int
    end: int
    own: str
    first: bool
    """Whether it opens a sentence."""
    gap: str
    """The characters between it and the word before."""

    @property
    def key(self) -> str:
        """The word in lower case, as word lists hold it."""
        return self.text.lower()

    @property
    def capital(self) -> bool:
        """Whether it is written like a name: ``Rachel``, ``McCord``, ``D'Andre``."""
        shouted = len(self.text) > 1 and self.text.isupper()
        return self.text[0].isdigit() or (self.text[0].isupper() and not shouted)

    @property
    def stop(self) -> int:
        """Where the word ends, including its possessive ending."""
        return self.end + len(self.own)


def split_tokens(text: str) -> list[WordToken]:
    """Split a text into words.

    >>> [(t.text, t.own, t.first) for t in split_tokens("Dr. House's cane. He sits.")]
    [('Dr', '', True), ('House', "'s", False), ('cane', '', False), ('He', '', True), ('sits', '', False)]
    """
    found: list[WordToken] = []
    last = 0
    for match in WORD_PATTERN.finditer(text):
        word, own = _split_possessive(match.group())
        gap = text[last : match.start()]
        abbreviated = bool(found) and gap.startswith(".") and _abbreviation(found[-1].text)
        first = not found or (SENTENCE_END.search(gap) is not None and not abbreviated)
        found.append(WordToken(word, match.start(), match.start() + len(word), own, first, gap))
        last = found[-1].stop
    return found


def _abbreviation(word: str) -> bool:
    return word.lower() in TITLES or word.lower() in PLURAL_TITLES or (len(word) == 1 and word.isupper())


def _split_possessive(word: str) -> tuple[str, str]:
    match = POSSESSIVE.match(word)
    if match:
        return match["base"], match["own"]
    return word.rstrip("'’"), ""
