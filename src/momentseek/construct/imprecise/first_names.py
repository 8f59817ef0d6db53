"""Frequent English first names by gender, and those borne by both; our own compilation.

It is the fallback where neither the user nor the corpus's own pronouns tell a character's gender (see ``names``), and
it makes a name seen only once believable (see ``gazetteer``).
"""

from __future__ import annotations

from momentseek.construct.imprecise.word_lists import word_set

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
